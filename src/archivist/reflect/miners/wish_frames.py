"""The sentences by which people state a standing wish or a correction: a table for each language.

A frame is a pattern that begins where a clause begins, behind the language's lead words. A new line is
another choice, `…` stands for a few words of the same clause, and `{name}` for the entry of that name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from archivist.cold_start import lazy_pattern

LONGEST_WISH = 170
CLAUSE_MARKS = ",;:\uff0c\uff1b\uff1a\u3001"
# Not across a relative pronoun: what a thing always does is no wish.
_FEW_WORDS = rf"(?:(?! (?:that|which|who|qui|que|dont)\b| qu')[^{CLAUSE_MARKS}\n]){{0,70}}?"
_ANYWHERE = {
    # A path, a file or an identifier.
    "name": r"[^\s,\uff0c/._]*+[/._][^\s,\uff0c]*+",
    "clauses": r"[^\n]{0,90}?",
    "thing": r"[\w@/.'\u2022-]+(?: [\w@/.'\u2022-]+){0,3}?",
}

FROM_NOW_ON = (
    r"(?:from now on|from here on(?: out)?|going forward|moving forward|in (?:the )?future|as a rule"
    r"|next time|henceforth|for (?:all )?(?:future|later) \w+)"
)
_ENGLISH = {
    # Words before a wish that add nothing to it.
    "leads": r"""
        please|pls|also|and|but|so|ok|okay|(?:no|nope|wrong|stop)(?=[,.!])|actually|hey|hi|good
        great|thanks|fine|well|yes|fyi|btw|by the way|just so you know|to be clear|personally|generally
        (?:one|another) (?:more )?thing(?: for the future)?
        (?:as|like) i said(?: before| already)?|(?:for|in) (?:this|our) {project}|let's""",
    # Marks of a rule: what follows a colon behind them is the user's own.
    "from_now_on": FROM_NOW_ON,
    "remember": r"""
        remember(?: that| to)?(?! when| how| the| me)|keep in mind(?: that)?|bear in mind(?: that)?
        make it a habit to|make sure (?:to |you )?always|note for later|for future reference""",
    # For good by their words.
    "standing": r"""
        {remember}
        {taste}
        (?:i|we)(?:'d| would)? (?:want|like|need) … (?:{from_now_on}|{when} (?:all|every|each))
        (?:i|we)(?:'d| would)? (?:want|like) (?:you to (?:use|keep|write|name|answer)|all|every|each)
        it(?:'d| would) be (?:nice|great|good|better) if you(?! fix| add| check| look)
        (?:if|when) (?:you(?:'re| are) )?(?:ever )?(?:unsure|in doubt|not sure){clauses}\bask
        make sure (?:to|you) … {occasion}|better use … than
        {thing} (?:rather than|instead of) {thing}(?=,? please)
        {thing} (?:is|are) a no-go|stick with|call me \w+(?=\W*\Z)
        (?:it's|it is) important to me that|i find {clauses}, avoid|i (?:work|am|'m) on {clauses}, so
        be (?:brief|concise|terse|explicit|consistent)|no (?!need|problem|worries)… please
        (?:i|we) (?:(?:don't|do not) (?:like|want)(?! to\b)|(?:really )?want you to|never want)
        prefer|you (?:can|may) always|no more \w+
        (?:ask|check with|tell|warn|consult|ping) me … before(?! you (?:finish|start|continue|go)\b)
        (?:if|when) {clauses}, (?:please )?(?:ask|tell|warn) me|ask … before \w+ing
        you (?:must|should|have to|need to) {clauses}\b(?:when|whenever|every time|each time)
        {artifacts} (?:need to|must|should|have to) (?:be|have|start|use|follow|stay|go)
        {artifacts} need (?:an?|the|their)|{clauses}, always(?=\W*\Z)
        (?:put|place|store|keep|save) (?:all|new|every|any) … {place} {name}
        i expect|(?:it's|it is) (?:fine|ok|okay) to … (?:here|always|everywhere)
        (?:write|use|name|log|answer|reply|commit|document|format) … only(?=\W*\Z)
        (?:stick to|follow|adhere to|respect) … (?:style|conventions?|guides?|patterns?|rules?|standards?)
        leave … alone|nothing (?:goes|gets|lands|ships|is \w+ed) … without
        before {clauses}\b(?:ask|check with|tell) me
        {clauses}\bwithout (?:(?:asking|telling) me|my (?:ok|okay|approval|consent|permission))
        (?:run|update|check|add|write|rebase|format|lint) … {occasion}
        (?:every|each|any|all) (?:\w+ )?{artifact}s? … (?:needs?|must|gets?|ha(?:s|ve) to|should have)
        only (?:use|run|edit|commit|push|deploy|write|log|import|touch)
        keep (?:your |the |all |every )?{product}
        use … (?:(?:in|for) (?:all|every|any)|everywhere|throughout)
        you (?:should|must) (?:not|always|never|only)""",
    # What somebody likes; it is for good in a first message too.
    "taste": r"""
        (?:i|we)(?:'d| would)? (?:much |really |strongly |tend to |generally |usually )*prefer
        (?:i|we)(?:'d| would) (?:much )?rather (?:you|we|have|use|keep|not use|avoid)
        (?:i|we) (?:really )?(?:like|love|favou?r|hate|dislike)(?! it\b| that\b)
        i(?:'m| am) (?:not )?(?:really )?(?:a )?(?:big |huge )?fan of|my preference|(?:don't|do not) ever""",
    # What the user keeps for themselves; it is for good in a task too. Only where it is about work.
    "mine": r"""
        leave … to (?:me|us)|(?:i|we)(?:'ll| will) (?:handle|take care of|do) (?:the|all|any)
        (?:i|we)(?:'ll| will)? … (?:myself|ourselves|by hand)(?=\W*\Z)
        \w+ing(?: \w+){0,2} is (?:my (?:job|call|business)|up to me|on me|mine)
        (?:never|do not|don't|dont) … (?:unless i|without (?:asking|telling|checking with) me|without my)
        only {action} … (?:when|if|after|once) i""",
    # For good, unless `once` says that they are for the moment.
    "corrections": r"""
        (?:{ask} (?:please )?not|don't|do not|dont|avoid) {action}(?= \S)(?! it\b| that\b| them\b)
        stop \w+ing(?! so\b| too\b)
        you (?:no longer|don't|do not) (?:need|have) to
        (?:you should|you must|you need to) use
        use \S{clauses} (?:instead|rather than|not)
        use \S+ for
        (?:you )?(?:shouldn't|mustn't|should not|must not) (?:be )?\w+""",
    # What holds in the project. Where a trouble is described, none of them counts.
    "facts": r"""
        we (?:always |only |usually |all |just |now )?use
        we (?:always |only |usually |all |just |now )?{habit}(?!ing\b| getting) … {relation}
        we (?:don't|do not|never|stopped) (?:{habit}|use|using|push|mock|add|allow)
        we (?:don't|do not|never) … (?:here|at all|in (?:this|our) {project})
        we no longer \w+
        (?:our|we) (?:(?! ha(?:s|ve|d) )[^\n]){0,90}?(?:,| and|, and| -) not(?! sure| yet| only| just| really)
        the (?:single )?source of truth … is
        our (?:\w+ )?(?:default|main|standard|official|preferred) \w+ (?:is|are)
        for … we (?:always |only )?use|we (?:have )?(?:moved|switched|migrated) (?:off|to|from|away)
        (?:it's|it is|they're|they are) (?:called|named|spelled|written|kept|in|under|at) {clauses},? not
        {subject} (?:belongs?|lives?|resides?|(?:is|are) (?:kept|stored|defined)) (?:in|into|under|on|at)
        {subject} go (?:to|in|into|under)
        {subject} (?:goes|comes?) (?:{place}|from) {clauses}(?:,|,? and) not
        {subject} (?:is|are) (?:{place}|from) (?:the )?{name}{clauses}(?:,|,? and) not
        {thing} (?:is|are|has been) (?:now )?{outdated}{clauses}\b(?:use|prefer|take|switch|don't|never|avoid)
        {thing} (?:is|are) (?:off[ -]limits|forbidden|banned|not allowed|read-only)
        we (?:follow|adhere to|stick to)
        {ours} … (?:convention|rule|policy|standard|practice|style)(?: here)? is""",
    # A question that asks for something.
    "ask": "(?:can|could|would|will) you",
    "requests": r"{ask} (?:please )?(?:always|never|stop \w+ing)",
    "once": r"""
        for now|yet|today|tomorrow|(?<!from )now|again|until|option|the (?:first|second|other)
        th(?:is|ese)(?! {project}| machine| computer| is| was)""",
    "trouble": r"""
        but|why|fail\w*|crash\w*|broken|breaks?|broke|errors?|hangs?|slow|missing|red|stuck|wrong|bugs?|too""",
    # Beginnings that tell what happens.
    "statements": r"""
        (?:the |this |our |my )?(?:bug|error|problem|issue|failure|crash|request|traffic|cause|fault)""",
    "polite_end": "please|pls|thanks|thank you",
    "project": "repo|repository|project|codebase|code base|workspace",
    "artifacts": r"""
        (?:all |new |our |the )?(?:unit |commit |log |branch |file |variable )?{plural}""",
    "plural": r"""
        tests|commits|messages|names|branches|functions|prs|components|comments|migrations
        endpoints|features|modules|classes|scripts|releases|changes""",
    "artifact": r"""
        commit|push|pr|pull request|change|edit|merge|release|deploy|task|fix|feature|migration
        branch|endpoint""",
    "action": r"""
        use|using|run|running|amend|add|adding|write|writing|create|creating|commit|committing
        push|pushing|touch|edit|editing|mock|mocking|skip|install|put|leave|call|modify|rename
        delete|squash|rebase|format|import|log|rewrite|assume|guess
        abbreviate|introduce|drop|invent|hardcode|duplicate|swallow|catch|disable|suppress|reformat|bump""",
    "habit": r"""
        deploy|release|ship|publish|tag|branch|merge|rebase|squash|build|host|track|format|lint
        name|write|log|keep|store|put|commit|target|review|test|call""",
    "occasion": "{when} (?:every|each|any) {artifact}",
    "when": "(?:before|after|for|on|with|in)",
    "product": r"""
        answers?|explanations?|repl\w+|responses?|commits?|functions?|messages?|summar\w+|diffs?|prs?""",
    "relation": "from|with|via|through|on|in|to|by|as|after",
    "subject": "(?:(?:the|our|all|your) )?{thing}",
    "place": "in|to|into|under|on|at",
    "outdated": "deprecated|obsolete|legacy|dead|outdated|unmaintained",
    "ours": "our|my|the (?:team|house|project|company)(?:'s)?",
}  # fmt: skip
_GERMAN = {
    "leads": r"""
        bitte|also|und|aber|ok|okay|gut|(?:nein|nee|falsch|halt)(?=[,.!])|danke|hey|übrigens|auch
        noch was|wie gesagt|doch|mal|(?:in|für) (?:diese[sm]|unser(?:em)?) (?:projekt|repo)""",
    "from_now_on": r"""
        ab jetzt|ab sofort|von jetzt an|von nun an|zukünftig|künftig|in zukunft|fortan
        (?:beim )?nächste[sn]? mal|das nächste mal|grundsätzlich|generell""",
    "remember": r"""
        merk(?:e|t)? (?:dir|euch)(?: bitte)?|denk(?:e)? (?:bitte )?(?:daran|dran)|vergiss nicht
        zur erinnerung|beachte|(?:gut )?zu wissen""",
    "standing": r"""
        {remember}
        {from_now_on}
        (?:immer|stets|nie|niemals|nie wieder) (?!wenn|noch|wieder|dann|mehr|ge\w+)…\w+n(?= ?[.!]*\Z|,)
        {imperative} … (?:immer|stets|nie|niemals|{from_now_on}|(?:vor|nach|bei) jede[mrs])
        {taste}
        lass das mit
        ich (?:möchte|will)(?: keine?n?| nicht| nie|,? dass du)
        (?:schreibe?|verwende|benutze?|nutze?|antworte) … nur|lasse? … in ruhe
        lieber {clauses}\w+en(?=\W*\Z)
        (?:wir|lieber) bevorzugen
        frage? (?:mich|uns|erst|vorher|bitte)\b{clauses}(?:bevor|vorher|vor)
        bevor du {clauses}frage? (?:mich|erst|bitte)
        (?:jedes mal|immer|jedesmal) wenn du|sobald du
        jede[rs]? (?:pr|commit|branch|änderung|funktion|fix) (?:braucht|muss|bekommt)
        {clauses}\bohne (?:mich zu fragen|meine zustimmung|rückfrage)
        keine?n? {clauses}\bmehr
        du (?:sollst|darfst|musst|solltest) … (?:immer|nie|niemals|nicht|keine?n?)""",
    "mine": r"""
        (?:das |den |die )?[\w-]+ (?:\w+ )?(?:mache|mach|übernehme|erledige) ich|überlass(?:e|t)? … mir
        (?:ich|wir) … (?:selbst|selber)(?=\W*\Z)""",
    "taste": r"""
        ich (?:bevorzuge|mag|hasse)(?! (?:das|es)\b)|ich hätte (?:es )?(?:lieber|gerne?)
        (?:mir|uns) (?:wäre|ist|sind) … lieber""",
    "corrections": r"""
        {negatable} … (?:nicht|keine?n?|nie)
        keine?n? \w+ in \w+(?=\W*\Z)
        (?:fass|fasse|rühr|rühre) … nicht … an|lass die finger von
        du (?:musst|brauchst) … nicht mehr
        hör(?:e)? (?:bitte )?(?:damit )?auf
        (?:nimm|verwende|benutz|benutze|nutze|nutz) {clauses}(?:statt|anstatt|anstelle|stattdessen|nicht)
        nicht … (?:verwenden|benutzen|nutzen|committen|pushen|ändern|anfassen|löschen)""",
    "facts": r"""
        (?:hier |bei uns |für … )?(?:verwenden|benutzen|nutzen|nehmen|deployen) wir
        wir (?:verwenden|benutzen|nutzen|nehmen|schreiben|testen|veröffentlichen)
        wir \w+en (?:nie|niemals|immer|stets|nur|keine?n?)
        wir (?:deployen|releasen|mergen|rebasen|squashen|taggen)
        {subject} (?:gehör(?:t|en)|komm(?:t|en)) (?:nach|in|unter|zu|ins)
        {subject} (?:lieg(?:t|en)|heiß(?:t|en)) {clauses}(?:,|,? und) (?:nicht|kein)
        {subject} (?:steh(?:t|en)|ist|sind) (?:in|unter|im) {name}{clauses}(?:,|,? und) (?:nicht|kein)
        {thing} (?:heißt|heißen) (?:bei uns|hier)
        unsere? {thing} (?:ist|sind|heißt) {clauses}, nicht
        {thing} (?:ist|sind) (?:bei uns |hier )?(?:tabu|verboten|schreibgeschützt)
        {thing} (?:ist|sind) (?:bei uns |hier )?(?:veraltet|deprecated|obsolet){clauses}\b{negatable}""",
    "negatable": r"""
        verwende|benutze?|nutze?|nimm|committe?|pushe?|ändere?|lösche?|bearbeite|installiere|mocke?
        schreibe?|lege?""",
    "ask": "(?:kannst|könntest|würdest) du",
    "requests": "{ask} (?:bitte )?(?:immer|nie|{from_now_on}|aufhören)",
    "once": r"""
        diesmal|noch|erst ?mal|vorerst|heute|gerade|im moment|bis|jetzt nicht|variante|option
        dies(?:e[nmrs]?)?(?! projekt| repo)""",
    "trouble": "aber|warum|fehler|schlägt|kaputt|hängt|langsam|fehlt|falsch|stürzt",
    "statements": r"""
        (?:der |die |das )?(?:fehler|bug|problem|absturz|ursache|anfrage)
        (?:{from_now_on}) (?:ist|sind|wird|werden|gibt|geht|hat|haben|liefert|kommt|steht)""",
    "polite_end": "bitte|danke",
    "imperative": r"""
        verwende|benutze?|nutze?|nimm|schreibe?|mache?|lasse?|führe?|starte?|teste?|committe?
        pushe?|frage?|setze?|lege?|halte?|ändere?|lösche?|füge?|prüfe?|gib|antworte|formatiere
        erstelle?|installiere|bearbeite|mocke?|fasse?|rühre?""",
    "subject": "(?:die|der|das|unsere?|alle)? ?{thing}",
}  # fmt: skip
_FRENCH = {
    "leads": r"""
        s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|et|mais|ok|bon|bien
        (?:non|faux|stop)(?=[,.!])|merci|aussi|alors|donc|parfait|en fait|comme je l'ai dit
        (?:dans|pour) ce (?:projet|dépôt)""",
    "from_now_on": r"""
        désormais|dorénavant|à l'avenir|à partir de maintenant|à partir d'aujourd'hui
        la prochaine fois|en règle générale|par principe""",
    "remember": r"""
        souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|retiens|retenez
        n'oublie(?:z)? (?:pas|jamais)|garde en tête|à retenir|pour info""",
    "standing": r"""
        {remember}
        {from_now_on}
        (?:ne |n')[\w-]+(?: \w+)? (?:jamais|plus jamais)
        (?:toujours|ne jamais|jamais) (?:\w+er|\w+ir|\w+re)
        {imperative} … (?:toujours|jamais|systématiquement|{from_now_on}|(?:avant|après|à) chaque)
        {taste}
        je ne veux (?:pas|plus|jamais)
        (?:écris|utilise|réponds|nomme) … (?:uniquement|seulement)|laisse … tranquille
        je (?:veux|voudrais|souhaite) que tu
        (?:nous|on) préfér\w+|préfère[zr]?
        (?:demande|demandez|préviens|consulte)(?:-(?:moi|nous))? … avant
        avant (?:de|d'|que) {clauses}(?:demande|préviens)-moi
        (?:chaque|à chaque) fois que tu|quand tu {clauses}(?:toujours|jamais)
        (?:chaque|tout|toute) (?:pr|commit|branche|fonction|modification) (?:doit|a besoin|nécessite)
        il (?:faut|ne faut) (?:toujours|jamais|pas|plus)
        tu (?:dois|ne dois|devrais|ne devrais) (?:toujours|jamais|pas|plus)
        {clauses}\bsans (?:me demander|mon accord|ma permission)""",
    "mine": r"laisse[zr]?-moi|(?:je|nous) … (?:moi-même|nous-mêmes)(?=\W*\Z)|c'est moi qui",
    "taste": "je (?:préfère|préf[éè]rerais|déteste|n'aime pas)|j'aime(?:rais (?:mieux|que tu)| mieux)",
    "corrections": r"""
        (?:arrête|arrêtez|cesse|cessez|évite|évitez) (?:de |d'|les? |la |l')\w+
        (?:ne |n'){negatable} (?:pas|plus)
        tu n'as plus besoin
        {imperative} {clauses}(?:au lieu d|plutôt qu|à la place|(?:et|,) (?:pas|non))\w*'?""",
    "facts": r"""
        (?:ici|chez nous|pour …),? (?:on|nous) (?:n')?\w+
        (?:on|nous) (?:n')?(?:utilis|déploi|déploy|publi|livr|test|écri|nomm|merge|rebase)\w*
        {subject} (?:vont|va|se mettent|se met|appartiennent) (?:dans|sous|à)
        {subject} (?:se trouve|se trouvent|vit) {clauses}(?:,|,? et) (?:pas|non)
        {subject} (?:est|sont) (?:dans|sous) {name}{clauses}(?:,|,? et) (?:pas|non)
        (?:notre|nos) {thing} (?:est|sont) {clauses}, pas
        (?:on|nous) (?:ne |n')\w+ (?:jamais|plus)|(?:on|nous) \w+ toujours
        {thing} (?:est|sont) (?:interdite?s?|en lecture seule)
        {thing} (?:est|sont) (?:obsolète|dépréciée?|abandonnée?)s?{clauses}\b(?:{imperative}|ne|n')""",
    "negatable": r"""
        utilise|commite|pousse|touche|modifie|supprime|ajoute|crée|installe|mocke|édite|change|écris""",
    "ask": "peux-tu|pourrais-tu|tu peux|tu pourrais",
    "requests": "{ask} … (?:toujours|désormais|arrêter)",
    "once": r"""
        pour l'instant|pour le moment|(?<!à partir de )maintenant|aujourd'hui|encore|d'abord|option
        tout de suite
        c(?:e|et|ette|es)(?! projet| dépôt| repo| base| soit| qui| que)""",
    "trouble": r"mais|pourquoi|erreur|échou\w+|échec|plante|cassée?|lent|manque|faux",
    "statements": r"""
        (?:le |la |l')?(?:bug|erreur|problème|panne|cause|requête)
        (?:{from_now_on}),? (?:le|la|les|l') ?\w+ (?:est|renvoie|retourne|donne|sera)""",
    "polite_end": "s'il te pla[iî]t|s'il vous pla[iî]t|stp|svp|merci",
    "imperative": r"""
        utilise[zr]?|lance[zr]?|écris|écrivez|mets|mettez|fais|faites|commite[z]?|pousse[z]?
        teste[z]?|vérifie[z]?|demande[z]?|garde[z]?|exécute[z]?|ajoute[z]?|formate[z]?|nomme[z]?
        place[z]?|passe[z]?|réponds|prends|touche[z]?|modifie[z]?|supprime[z]?|crée[z]?
        change[z]?|installe[z]?|mocke[z]?|édite[z]?""",
    "subject": "(?:le |la |les |l'|nos |notre )?{thing}",
}  # fmt: skip
_SPANISH = {
    "leads": r"""
        por favor|porfa|y|pero|ok|vale|bien|no(?=[,.!])|gracias|también|además|oye|perfecto
        como (?:ya )?dije|(?:en|para) (?:este|nuestro) (?:proyecto|repo)""",
    "from_now_on": r"""
        a partir de ahora|de ahora en adelante|desde ahora|en (?:el )?futuro|en adelante
        la próxima vez|por regla general|como regla""",
    "remember": r"""
        recuerda(?: que)?|recuerde(?: que)?|acuérdate(?: de(?: que)?)?|no olvides(?: que)?
        ten en cuenta(?: que)?|toma nota|que sepas(?: que)?""",
    "standing": r"""
        {remember}
        {from_now_on}
        (?:nunca|jamás) (?:más )?(?!has\b)\w+[ae]s|(?:nunca|jamás) (?!hemos|vemos|tenemos)\w+[aei]mos
        (?:escribe|usa|utiliza|responde|nombra) … (?:solo|sólo|solamente|únicamente)|deja … en paz
        siempre (?:{imperative}|(?!tenemos|vemos|hemos|recib|obten)\w+[aei]mos)
        {imperative} … (?:siempre|nunca|{from_now_on}|(?:antes de|después de|en) cada)
        {taste}
        no quiero
        quiero que (?:tú |siempre |nunca )?\w+[ae]s
        (?:pregúntame|consúltame|avísame|pregunta) … antes
        antes de {clauses}(?:pregúntame|consúltame|avísame)
        (?:cada vez|siempre) que \w+[ae]s
        (?:cada|todo|toda) (?:pr|commit|rama|función|cambio) (?:necesita|debe|lleva)
        (?:hay que|no hay que|debes|no debes|tienes que) … (?:siempre|nunca)
        {clauses}\bsin (?:preguntarme|mi permiso|avisarme)
        no vuelvas a""",
    "mine": r"""
        (?:el |la |los |las )?\w+ (?:\w+ )?l[ao]s? (?:hago yo|hacemos nosotros)|yo me encargo""",
    "taste": "prefiero|preferiría|preferimos|odio|no me gustan?|me gustan|me gustaría que",
    "corrections": r"""
        (?:deja|dejen|dejad|para) de \w+[rs]
        (?:evita|evitad) \w+
        ya no (?:hace falta|necesitas|tienes que)
        no {action}
        {imperative} {clauses}(?:en (?:lugar|vez) de|(?:,|,? y) no)""",
    "facts": r"""
        para … (?:usamos|utilizamos)
        (?:aquí|acá|en este proyecto),? (?:no )?\w+[aei]mos
        (?:no )?(?:siempre |solo |sólo )?(?:usamos|utilizamos|desplegamos|publicamos|escribimos)
        {subject} (?:van|va|vive|viven|se guardan?|se ponen?) (?:en|a|bajo)
        {subject} se llaman? {clauses}(?:,|,? y) no
        nuestr\w+ {thing} (?:es|son) {clauses}, no
        {subject} (?:está|están) (?:en|bajo) {name}{clauses}(?:,|,? y) no
        {thing} (?:está|están|es|son) (?:prohibid[oa]s?|de solo lectura)
        {thing} (?:está|están|es|son) (?:obsolet|deprecad)[oa]s?{clauses}\b(?:{imperative}|no)""",
    "ask": "puedes|podrías",
    "requests": "{ask} … (?:siempre|dejar de)",
    "once": r"""
        (?<!de )(?<!desde )ahora|de momento|por el momento|todavía|aún|hoy|primero|opción
        est(?:e|a|os|as)(?! proyecto| repo)""",
    "trouble": r"pero|por qué|error|fall\w+|rot[oa]|lent[oa]|falta",
    "statements": r"""
        (?:el |la )?(?:error|fallo|bug|problema|causa|petición|botón)
        (?:{from_now_on}),? (?:el|la|los|las) \w+ (?:es|devuelve|será|está)""",
    "polite_end": "por favor|porfa|gracias",
    "imperative": r"""
        usa|utiliza|ejecuta|corre|escribe|haz|pon|pregunta|añade|agrega|mantén|guarda|prueba
        revisa|comprueba|formatea|responde|lanza|crea|nombra|pasa""",
    "subject": r"(?:el |la |los |las |nuestr\w+ )?{thing}",
    "action": r"""
        toques|uses|utilices|edites|modifiques|borres|añadas|agregues|crees|cambies
        hagas (?:push|commit|merge)|subas|instales|escribas|metas""",
}  # fmt: skip
_CHINESE = {
    "leads": r"""
        请|麻烦|(?:不|不对|不是|错了|好|好的|那|嗯)(?=[,.!\uff0c\u3002\uff01])|另外|还有|对了
        但是?|而且|谢谢|在?(?:这个|本|我们的?)项目[里中]?""",
    "from_now_on": "以后|今后|从现在起|从现在开始|从今以后|往后|下次|原则上",
    "remember": r"记住|记得|切记|牢记|请记|别忘了|注意(?=[:\uff1a])",
    "standing": r"""
        {remember}
        {from_now_on}
        (?:都|你)?(?:总是|始终|永远|一律|务必|一定要|必须)(?!{trouble})
        (?:绝不|绝对不要|永远不要|千万不要|千万别|从不|不要再|别再|不准|禁止|严禁)
        每次…(?:都|要|必须|先|前|后)(?!{trouble})
        {taste}
        我(?:们)?(?:希望你|想要你|不想|不希望|不要)(?= ?\w)
        …前…(?:问我|告诉我|问一下我|征求我|经我同意)
        …(?:未经|没有)我(?:的)?(?:同意|允许)
        (?:所有|每个|任何)…(?:都|必须|一律|要|需要)(?!{trouble})""",
    "mine": r"…(?:由我|我自己|我来|留给我|交给我)",
    "taste": r"我(?:们)?(?:更)?(?:喜欢|偏好|倾向|宁愿|不喜欢)(?= ?\w)",
    "corrections": r"""
        (?:不要|别|勿|请勿|不许|不能){action}
        (?:改)?(?:用|使用)[^\n]{1,40}?(?:代替|替代|而不是|取代|不要用|不用|别用|而非)
        (?:不用|不必|无需)再
        应该用|要用|得用|改用""",
    "facts": r"""
        {ours}(?:都|总是|一直|只|统一|从来|不再|一般|默认|不|已经)*(?:用|使用|从|采用|遵循|部署|支持|发布|把)
        …(?:在|放在|位于|叫) ?{name}[^\n]{0,60}?(?:不在|不是|不放|不要放|不叫|而非)
        …(?:都|统一|一律|要|应该?|必须)(?:放在|放到|放进|写在|写到|放)
        …(?:弃用|废弃|过时|淘汰)[^\n]{0,20}?(?:用|不要)
        …我们(?:都|一直|总是|只)用
        …只(?:用|能|准|许)|我们的…是[^\n]{1,40}?不是""",
    "ask": "能不能|可以|可不可以|能否|你能",
    "requests": "{ask}…(?:总是|每次|以后|不要再|别再)",
    "once": r"""
        这次|本次|暂时|先别|先不|还没|今天|现在(?!起|开始)|这个(?! ?项目| ?仓库| ?库)|此次|目前
        第[一二三四12345]个?|方案""",
    "trouble": "失败|报错|出错|错误|超时|崩溃|卡住|为什么|怎么|返回|加载不|没有?被|bug",
    "statements": "…(?:bug|错误|问题)",
    "polite_end": "谢谢|拜托",
    "ours": "(?:我们|咱们|团队|本项目|这里|我们团队|项目)(?:这里|这边|项目|里|团队)?",
    "action": r"""
        动|碰|改|修改|编辑|提交|推送|使用|用|删除|添加|加|写|跑|运行|创建|安装|mock|到处|直接
        随便|在""",
}  # fmt: skip

_PORTUGUESE = {
    "leads": "por favor|e|mas|ok|bem|obrigad[oa]|também",
    "from_now_on": "a partir de agora|de agora em diante|daqui (?:em diante|para a frente)|no futuro",
    "remember": "lembra-te|lembre-se|não te esqueças|não se esqueça|tem em conta",
    "standing": r"""
        {remember}
        {from_now_on}
        {taste}
        (?:nunca|jamais) (?:uses?|faças?|façam?|edites?|mexas?|apagues?)
        sempre (?:usa|use|escreve|escreva|corre|corra|executa|execute)""",
    "mine": r"(?:o |a |os |as )?\w+ (?:\w+ )?(?:faço|trato) eu|deixa … comigo",
    "taste": "prefiro|preferia|preferimos|preferir?ia|gostava que|gostaria que|odeio|não gosto de",
    "corrections": r"(?:evita|evite|não uses|não use|para de|pare de) \w+",
    "facts": "(?:aqui )?(?:usamos|não usamos)",
    "ask": "podes|pode|poderia",
    "requests": "{ask} … (?:sempre|parar de)",
    "once": "agora não|por agora|hoje|ainda|opção|primeiro",
    "trouble": r"mas|porquê|erro|falha\w*|lento",
    "statements": "(?:o |a )?(?:erro|bug|problema)",
    "polite_end": "por favor|obrigad[oa]",
}
_ITALIAN = {
    "leads": "per favore|e|ma|ok|bene|grazie|anche",
    "from_now_on": "d'ora in poi|da ora in poi|d'ora in avanti|in futuro",
    "remember": "ricorda(?:ti)?(?: che)?|tieni presente|non dimenticare",
    "standing": r"""
        {remember}
        {from_now_on}
        {taste}
        non \w+ mai|mai \w+re|usa sempre|sempre \w+re""",
    "mine": r"(?:il |la |i |le )?\w+ (?:\w+ )?(?:lo|la|li|le) faccio io|lascia … a me",
    "taste": r"preferisco|preferirei|preferiamo|vorrei che|odio|non mi piac\w+|mi piac(?:ciono|erebbe che)",
    "corrections": r"(?:evita|smetti di|non usare) \w+",
    "facts": "(?:qui )?(?:usiamo|non usiamo)",
    "ask": "puoi|potresti",
    "requests": "{ask} … (?:sempre|smettere)",
    "once": "per ora|oggi|ancora|opzione|adesso",
    "trouble": "ma|perché|errore|fallisce|lento",
    "statements": "(?:il |la |l')?(?:errore|bug|problema)",
    "polite_end": "per favore|grazie",
}


class Frames(NamedTuple):
    """The frames of a language as patterns, and the beginnings of the words that they are made of."""

    stems: frozenset[str]
    standing: re.Pattern[str]
    corrections: re.Pattern[str]
    facts: re.Pattern[str]
    requests: re.Pattern[str]
    in_task: re.Pattern[str]
    taste: re.Pattern[str]
    mine: re.Pattern[str]
    once: re.Pattern[str]
    trouble: re.Pattern[str]
    opening: re.Pattern[str]
    announced: re.Pattern[str]
    polite_end: re.Pattern[str]


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:4] for word in re.findall(r"[^\W\d_]{2,}", text.lower()))


def _compile(table: dict[str, str], *, has_spaces: bool = True) -> Frames:
    before, edge, gap = (r"(?<!\w)", r"(?!\w)", " ") if has_spaces else ("", "", " ?")

    def words(name: str) -> str:
        text = "|".join(line.strip() for line in table[name].strip().splitlines())
        for other in re.findall(r"\{([a-z_]+)\}", text):
            meaning = _ANYWHERE.get(other) or words(other)
            text = text.replace(f"{{{other}}}", f"(?:{meaning})")
        text = text.replace(" … ", f"(?: {_FEW_WORDS})? ").replace("…", _FEW_WORDS)
        return f"(?:{text})"

    def pattern(text: str) -> re.Pattern[str]:
        return lazy_pattern(text, re.IGNORECASE, longest=LONGEST_WISH)

    for_good = rf"(?:{words('from_now_on')}|{words('remember')}){edge}"
    leads = rf"(?:{words('leads')}{edge}[{CLAUSE_MARKS}.! ]*)*+"
    start = rf"(?:\A|[{CLAUSE_MARKS}]{gap}| - ){leads}(?!{words('statements')}{edge})"
    # "Prefiero" alone says a wish, although it begins as in English.
    stems = (_stems(" ".join(table.values())) - _ENGLISH_STEMS) | (_stems(table["taste"]) & {"pref"})
    return Frames(
        stems=stems,
        standing=pattern(f"{start}{words('standing')}{edge}"),
        corrections=pattern(f"{start}{words('corrections')}{edge}"),
        facts=pattern(f"{start}{words('facts')}{edge}"),
        requests=pattern(f"{start}{words('requests')}{edge}"),
        in_task=pattern(rf"\A{leads}(?!{words('statements')}{edge}){for_good}"),
        taste=pattern(rf"\A{leads}{words('taste')}{edge}"),
        mine=pattern(f"{start}{words('mine')}{edge}"),
        # Of other languages the corrections say as much.
        once=pattern(f"{before}{words('once')}{edge}"),
        trouble=pattern(f"{before}{words('trouble')}{edge}"),
        opening=pattern(
            rf"\A{leads}(?:{words('ask')}{edge} ?{leads})?(?:{for_good}[{CLAUSE_MARKS} ]*{leads})*+"
        ),
        announced=pattern(rf"\A{leads}{for_good} ?(?=:)"),
        polite_end=pattern(rf"[,.! ]*{words('polite_end')}[.! ]*\Z"),
    )


_ENGLISH_STEMS = _stems(" ".join(_ENGLISH.values()))
_CHINESE_WORD = lazy_pattern(r"[\u3400-\u9fff]")
ENGLISH = _compile(_ENGLISH)
_WITH_SPACES = tuple(_compile(table) for table in (_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN))
_WITHOUT_SPACES = _compile(_CHINESE, has_spaces=False)


def languages_of(text: str) -> list[Frames]:
    """Return the languages that a text may be in, English always.

    The patterns of all languages take a cold process 70 ms to compile, those of English 30.
    """
    stems = _stems(text)
    found = [ENGLISH, *(frames for frames in _WITH_SPACES if not stems.isdisjoint(frames.stems))]
    return [*found, _WITHOUT_SPACES] if _CHINESE_WORD.search(text) else found
