"""What is known about the programs that agents run: which only look, filter, wrap others or run scripts."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(text.split())


KEYWORDS = words_of("! { } ( ) do done then else elif fi if while until esac")

# Wrappers, each with those of its flags that take a value: the value is not the wrapped program.
WRAPPERS = {
    **dict.fromkeys(words_of("nohup setsid exec command builtin unbuffer bunx pipx corepack"), words_of("")),
    "dotenv": words_of("-e -f -p -v -c"),
    "arch": words_of("-e -d"),
    "sudo": words_of("-u -g -h -p -C -U"),
    "doas": words_of("-u"),
    "env": words_of("-u -C -S"),
    "timeout": words_of("-s -k --signal --kill-after"),
    "gtimeout": words_of("-s -k"),
    "time": words_of("-f -o"),
    "nice": words_of("-n"),
    "ionice": words_of("-c -n"),
    "stdbuf": words_of("-i -o -e"),
    "xargs": words_of("-I -n -P -L -d -a -s --max-args --max-procs --delimiter"),
    "xvfb-run": words_of("-s -n -e"),
    "npx": words_of("-p --package -c"),
    "uvx": words_of("--from --with --python -p"),
}
# Programs with a subcommand that runs another program, and the flags of it that take a value.
RUNNERS = {
    **{name: {"run": words_of("")} for name in ("poetry", "pipenv", "pdm", "hatch", "rye")},
    **{name: {"run": words_of("-n -p --name --prefix")} for name in ("conda", "mamba")},
    **{name: {"exec": words_of(""), "dlx": words_of("")} for name in ("pnpm", "yarn")},
    **{name: {"exec": words_of("")} for name in ("bundle", "npm")},
    "uv": {"run": words_of("--with --python -p --extra --group --project --directory --env-file")},
    "pixi": {"run": words_of("-e --environment")},
    "bun": {"x": words_of("")},
    # Of a version manager, and of what fills the environment.
    **{name: {"exec": words_of(""), "x": words_of("")} for name in ("mise", "rtx", "asdf")},
    **{
        name: {"exec": words_of("--using"), "run": words_of("--node --npm --pnpm --yarn")}
        for name in ("fnm", "volta")
    },
    **{name: {"exec": words_of(""), "run": words_of("")} for name in ("nvm", "n")},
    **{
        name: {"run": words_of("-f --env-file --project --config -p -c")}
        for name in ("op", "doppler", "dotenvx")
    },
}
# These name versions of tools before the program: `mise exec node@20 -- pnpm test`.
VERSION_MANAGERS = frozenset(("mise", "rtx", "asdf"))
SHELLS = words_of("bash sh zsh dash ksh")

# Programs that are named by a second word, and where that word leads to a third.
NESTED = {
    "npm": words_of("run run-script config"),
    "pnpm": words_of("run config"),
    "yarn": words_of("run config workspace"),
    "bun": words_of("run pm"),
    "docker": words_of("compose container image volume network buildx system"),
    "podman": words_of("container image compose"),
    "git": words_of("stash remote submodule worktree config bisect"),
    "uv": words_of("pip tool python"),
    "glab": words_of("ci mr issue repo release"),
    "gh": words_of("pr issue repo run workflow release api auth"),
    "cargo": words_of(""),
    "kubectl": words_of("config rollout"),
    "terraform": words_of("state workspace"),
    "aws": words_of("s3 ec2 ecr ecs iam lambda logs"),
    "gcloud": words_of("compute run auth config"),
    "conda": words_of("env config"),
    "deno": words_of("task"),
}
SUBCOMMANDED = frozenset(NESTED) | words_of(
    "pip pipx poetry pipenv pdm hatch rye pixi mamba apt apt-get apk dnf yum brew pacman snap go "
    "rustup dotnet mvn gradle gradlew mvnw gem bundle composer flutter dart swift make just task nox "
    "tox django-admin manage.py flask alembic systemctl service helm vagrant ansible npm-check svn "
    "hg jj bazel mix rails rake sqlfluff ruff pre-commit playwright prisma next vite nx turbo lerna "
    "wrangler vercel firebase heroku fly conan supabase dbt airflow celery streamlit "
    "jupyter issues str_replace_editor edit"
)

FILTERS = words_of(
    "tail head grep egrep fgrep rg tee cat less more sort uniq wc cut awk gawk sed tr jq column nl "
    "fold xxd strings yq rev tac paste fmt pr sponge bat"
)
LOOKS = words_of(
    "ls cat grep egrep fgrep zgrep rg ag ack find fd head tail less more wc file stat tree pwd du df "
    "diff cmp nl od xxd strings echo printf env printenv ps jq yq cut sort uniq awk gawk sed tr "
    "column which type whereis man whoami id uname hostname date basename dirname realpath readlink "
    "test [ [[ true : history top free lsof nproc bat zcat hexdump md5sum sha256sum tac pgrep pidof "
    "open goto scroll_down scroll_up search_dir search_file find_file view locate info help apropos "
    "comm fold expr"
)
LOOKING_SUBCOMMANDS = {
    "git": words_of(
        "status log diff show branch blame ls-files grep rev-parse describe shortlog reflog ls-tree "
        "cat-file remote tag ls-remote merge-base rev-list show-ref for-each-ref name-rev check-ignore"
    ),
    "pip": words_of("show list freeze index"),
    "uv": words_of("tree"),
    "npm": words_of("ls list view outdated info"),
    "yarn": words_of("list info why"),
    "pnpm": words_of("ls list why"),
    "conda": words_of("list info"),
    "cargo": words_of("tree metadata search"),
    "go": words_of("env list version doc"),
    "docker": words_of("ps images logs inspect"),
    "kubectl": words_of("get describe logs"),
    # Checks report how something went elsewhere; a failure there is their answer, not their own.
    "gh": frozenset(("issue view", "pr view", "pr list", "issue list", "pr diff", "run view", "run list"))
    | frozenset(("pr checks", "pr status", "run watch")),
    "glab": frozenset(("ci status", "ci view", "mr view", "mr list", "mr diff", "issue view", "issue list")),
    "apt": words_of("list search show"),
    "str_replace_editor": frozenset(("view",)),
}
# Steps that prepare or clean up, and do not show what a command line is for.
PREPARATIONS = words_of(
    "cd pushd popd export source . set unset mkdir sleep true : echo printf touch rm cp mv chmod "
    "alias wait shopt ulimit trap local read exit return eval declare umask kill pkill killall clear "
    "ln let break continue for case function select in [[ }"
)
# Programs that answer "no" with exit code 1, which is no failure.
ASKING = words_of(
    "grep egrep fgrep zgrep rg ag ack diff cmp test [ [[ which type whereis pgrep pidof expr comm "
    "false command pkill killall hash let read"
)
ASKING_GIT = words_of("diff grep check-ignore rev-parse merge-base show-ref ls-files")
# Programs that exit with non-zero because of the code that they check.
LINTERS = words_of(
    "eslint tsc ruff flake8 mypy pylint pyright sqlfluff shellcheck prettier black isort stylelint "
    "biome clippy-driver golangci-lint rubocop phpstan ktlint checkstyle hadolint yamllint "
    "markdownlint"
)
# With these `-h` means sizes or hidden file names, not help.
H_IS_NO_HELP = words_of("ls du df sort grep egrep rg free tail head psql mysql ssh docker")
TEST_RUNNERS = words_of("pytest py.test jest vitest mocha tox nox ctest phpunit rspec") | {
    "python -m pytest",
    "python -m unittest",
}
PACKAGE_MANAGERS = words_of("npm pnpm yarn bun")
# Programs that run a script file.
SCRIPTED = words_of("python node ruby perl bash php ts-node tsx deno")
