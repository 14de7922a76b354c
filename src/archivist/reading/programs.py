"""What is known about the programs that agents run: which only look, filter, wrap others or run scripts."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words("! { } ( ) do done then else elif fi if while until esac")

# Wrappers, each with those of its flags that take a value: the value is not the wrapped program.
WRAPPERS = {
    **dict.fromkeys(_words("nohup setsid exec command builtin unbuffer bunx pipx corepack"), _words("")),
    "dotenv": _words("-e -f -p -v -c"),
    "arch": _words("-e -d"),
    "sudo": _words("-u -g -h -p -C -U"),
    "doas": _words("-u"),
    "env": _words("-u -C -S"),
    "timeout": _words("-s -k --signal --kill-after"),
    "gtimeout": _words("-s -k"),
    "time": _words("-f -o"),
    "nice": _words("-n"),
    "ionice": _words("-c -n"),
    "stdbuf": _words("-i -o -e"),
    "xargs": _words("-I -n -P -L -d -a -s --max-args --max-procs --delimiter"),
    "xvfb-run": _words("-s -n -e"),
    "npx": _words("-p --package -c"),
    "uvx": _words("--from --with --python -p"),
}
# Programs with a subcommand that runs another program, and the flags of it that take a value.
RUNNERS = {
    **{name: {"run": _words("")} for name in ("poetry", "pipenv", "pdm", "hatch", "rye")},
    **{name: {"run": _words("-n -p --name --prefix")} for name in ("conda", "mamba")},
    **{name: {"exec": _words(""), "dlx": _words("")} for name in ("pnpm", "yarn")},
    **{name: {"exec": _words("")} for name in ("bundle", "npm")},
    "uv": {"run": _words("--with --python -p --extra --group --project --directory --env-file")},
    "pixi": {"run": _words("-e --environment")},
    "bun": {"x": _words("")},
    # Of a version manager, and of what fills the environment.
    **{name: {"exec": _words(""), "x": _words("")} for name in ("mise", "rtx", "asdf")},
    **{
        name: {"exec": _words("--using"), "run": _words("--node --npm --pnpm --yarn")}
        for name in ("fnm", "volta")
    },
    **{name: {"exec": _words(""), "run": _words("")} for name in ("nvm", "n")},
    **{
        name: {"run": _words("-f --env-file --project --config -p -c")}
        for name in ("op", "doppler", "dotenvx")
    },
}
# These name versions of tools before the program: `mise exec node@20 -- pnpm test`.
VERSION_MANAGERS = frozenset(("mise", "rtx", "asdf"))
SHELLS = _words("bash sh zsh dash ksh")

# Programs that are named by a second word, and where that word leads to a third.
NESTED = {
    "npm": _words("run run-script config"),
    "pnpm": _words("run config"),
    "yarn": _words("run config workspace"),
    "bun": _words("run pm"),
    "docker": _words("compose container image volume network buildx system"),
    "podman": _words("container image compose"),
    "git": _words("stash remote submodule worktree config bisect"),
    "uv": _words("pip tool python"),
    "glab": _words("ci mr issue repo release"),
    "gh": _words("pr issue repo run workflow release api auth"),
    "cargo": _words(""),
    "kubectl": _words("config rollout"),
    "terraform": _words("state workspace"),
    "aws": _words("s3 ec2 ecr ecs iam lambda logs"),
    "gcloud": _words("compute run auth config"),
    "conda": _words("env config"),
    "deno": _words("task"),
}
SUBCOMMANDED = frozenset(NESTED) | _words(
    "pip pipx poetry pipenv pdm hatch rye pixi mamba apt apt-get apk dnf yum brew pacman snap go "
    "rustup dotnet mvn gradle gradlew mvnw gem bundle composer flutter dart swift make just task nox "
    "tox django-admin manage.py flask alembic systemctl service helm vagrant ansible npm-check svn "
    "hg jj bazel mix rails rake sqlfluff ruff pre-commit playwright prisma next vite nx turbo lerna "
    "wrangler vercel firebase heroku fly conan supabase dbt airflow celery streamlit "
    "jupyter issues str_replace_editor edit"
)

FILTERS = _words(
    "tail head grep egrep fgrep rg tee cat less more sort uniq wc cut awk gawk sed tr jq column nl "
    "fold xxd strings yq rev tac paste fmt pr sponge bat"
)
LOOKS = _words(
    "ls cat grep egrep fgrep zgrep rg ag ack find fd head tail less more wc file stat tree pwd du df "
    "diff cmp nl od xxd strings echo printf env printenv ps jq yq cut sort uniq awk gawk sed tr "
    "column which type whereis man whoami id uname hostname date basename dirname realpath readlink "
    "test [ [[ true : history top free lsof nproc bat zcat hexdump md5sum sha256sum tac pgrep pidof "
    "open goto scroll_down scroll_up search_dir search_file find_file view locate info help apropos "
    "comm fold expr"
)
LOOKING_SUBCOMMANDS = {
    "git": _words(
        "status log diff show branch blame ls-files grep rev-parse describe shortlog reflog ls-tree "
        "cat-file remote tag ls-remote merge-base rev-list show-ref for-each-ref name-rev check-ignore"
    ),
    "pip": _words("show list freeze index"),
    "uv": _words("tree"),
    "npm": _words("ls list view outdated info"),
    "yarn": _words("list info why"),
    "pnpm": _words("ls list why"),
    "conda": _words("list info"),
    "cargo": _words("tree metadata search"),
    "go": _words("env list version doc"),
    "docker": _words("ps images logs inspect"),
    "kubectl": _words("get describe logs"),
    # Checks report how something went elsewhere; a failure there is their answer, not their own.
    "gh": frozenset(("issue view", "pr view", "pr list", "issue list", "pr diff", "run view", "run list"))
    | frozenset(("pr checks", "pr status", "run watch")),
    "glab": frozenset(("ci status", "ci view", "mr view", "mr list", "mr diff", "issue view", "issue list")),
    "apt": _words("list search show"),
    "str_replace_editor": frozenset(("view",)),
}
# Steps that prepare or clean up, and do not show what a command line is for.
PREPARATIONS = _words(
    "cd pushd popd export source . set unset mkdir sleep true : echo printf touch rm cp mv chmod "
    "alias wait shopt ulimit trap local read exit return eval declare umask kill pkill killall clear "
    "ln let break continue for case function select in [[ }"
)
# Programs that answer "no" with exit code 1, which is no failure.
ASKING = _words(
    "grep egrep fgrep zgrep rg ag ack diff cmp test [ [[ which type whereis pgrep pidof expr comm "
    "false command pkill killall hash let read"
)
ASKING_GIT = _words("diff grep check-ignore rev-parse merge-base show-ref ls-files")
# Programs that exit with non-zero because of the code that they check.
LINTERS = _words(
    "eslint tsc ruff flake8 mypy pylint pyright sqlfluff shellcheck prettier black isort stylelint "
    "biome clippy-driver golangci-lint rubocop phpstan ktlint checkstyle hadolint yamllint "
    "markdownlint"
)
# With these `-h` means sizes or hidden file names, not help.
H_IS_NO_HELP = _words("ls du df sort grep egrep rg free tail head psql mysql ssh docker")
TEST_RUNNERS = _words("pytest py.test jest vitest mocha tox nox ctest phpunit rspec") | {
    "python -m pytest",
    "python -m unittest",
}
# Programs that run a script file.
SCRIPTED = _words("python node ruby perl bash php ts-node tsx deno")
