"""Installers: put Archivist into the settings of agents' clients, and take it out again, exactly."""
