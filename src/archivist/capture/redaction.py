"""Redact secrets in text before it is stored, each by a typed placeholder, and refuse them in names."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from archivist.capture import secret_context
from archivist.capture import secret_rules as rules
from archivist.capture.secret_context import find_near_words
from archivist.capture.secret_places import PLACE_STEMS, find_by_place, find_flag_values
from archivist.capture.secret_rules import BY_ECHO, BY_FORM, BY_NAME, BY_PLACE, Span
from archivist.errors import RecordError
from archivist.text import replace_surrogates, without_controls

_SHORTEST_TEXT = 8
# A closing quote further away closes something else.
_QUOTED_REACH = 8192
# Each secret that is looked for elsewhere costs one more search of the whole text.
_MOST_ECHOED = 64
# Text with more names than this was made to take time: what stands beside the others is taken out unread.
# 20 kB of `token=` took .8 s of CPU to archive.
_MOST_JUDGED: Final = 1_000
_SHORTEST_UNJUDGED: Final = 4


class Secret(NamedTuple):
    """A redacted secret: its kind and number of occurrences, never the secret itself."""

    kind: str
    occurrences: int


class RedactedText(NamedTuple):
    """A redacted text and the kinds of its secrets."""

    text: str
    found: tuple[Secret, ...] = ()


def redact(text: str) -> RedactedText:
    """Replace every secret by `[redacted:kind]`; text without any comes back as the same object."""
    redacted = _redact_whole(text)
    if "\x1b" not in text or not rules.SPLIT_BY_CODE.search(redacted.text):
        return redacted
    # A colour that changes inside a secret hides its form.
    joined = _redact_whole(without_controls(redacted.text))
    return RedactedText(joined.text, (*redacted.found, *joined.found)) if joined.found else redacted


def _redact_whole(text: str) -> RedactedText:
    spans = _find(text)
    if not spans:
        return RedactedText(text)
    counts: Counter[tuple[str, str]] = Counter()
    # Taking one secret out can bare the next, so look again until a look finds nothing. Each round leaves
    # fewer characters outside placeholders, so this ends.
    while spans:
        pieces: list[str] = []
        position = 0
        for start, end, kind, _ in _with_repeats(text, _merge_spans(spans)):
            pieces += (text[position:start], rules.PLACEHOLDER_START, kind, "]")
            position = end
            counts[kind, text[start:end]] += 1
        pieces.append(text[position:])
        text = "".join(pieces)
        spans = _find(text)
    return RedactedText(text, tuple(Secret(kind, count) for (kind, _), count in counts.items()))


def _find(text: str) -> list[Span]:
    spans: list[Span] = []
    if len(text) < _SHORTEST_TEXT or (len(text) <= rules.LONGEST_PLAIN and rules.PLAIN_TEXT.match(text)):
        return spans
    for character, pattern in rules.VENDOR_SEPARATORS if rules.VENDOR_BODY.search(text) else ():
        if character in text:
            for separator in pattern.finditer(text):
                spans += _vendor_key(text, separator.end())
    if rules.THIN_HINT.search(text.encode("utf-8", "replace").translate(None, rules.THIN_DELETE)):
        spans += _keys_without_separator(text)
    for hint, find in (("://", _url_secrets), (" -", find_flag_values)):
        if hint in text:
            spans += find(text)
    return spans + _find_by_words(text)


def _find_by_words(text: str) -> list[Span]:
    """Find the values beside words that announce a secret."""
    spans: list[Span] = []
    # One character for one, whatever the text holds, so that places in `flat` are places in `text`.
    flat = (text if text.isascii() else text.encode("ascii", "replace").decode("ascii")).lower()
    # Each word costs one search of the whole text, so what several rules need is looked for once.
    present = {word for word in _WORDS if word in flat}
    for word, pattern in rules.NAMES:
        if word in present:
            spans += _named_values(text, flat, pattern)
            if word == "secret":
                spans += _kubernetes_secrets(text, flat)
    for hint, find_flat in _FLAT_RULES:
        if hint in present:
            spans += find_flat(text, flat)
    spans += find_near_words(text, flat, present)
    return spans + list(find_by_place(text, flat, present))


def _is_at_boundary(text: str, start: int) -> bool:
    return rules.FRESH_START.search(text[max(0, start - 10) : start]) is not None


def _vendor_key(text: str, after: int) -> Iterator[Span]:
    """Find the key whose prefix ends at `after`."""
    for rule in rules.VENDORS_BY_END[text[after - 3 : after]]:
        start = after - len(rule.prefix)
        if start < rule.lead or not text.startswith(rule.prefix, start):
            continue
        is_inside = not rule.lead and not _is_at_boundary(text, start)
        # Behind a letter only a long prefix is one.
        is_in_word = is_inside and text[start - 1] not in "-_"
        body = rule.body.match(text, after) if not is_in_word or len(rule.prefix) >= 4 else None
        if not body or (is_inside and not rules.is_drawn_body(body[0], is_mixed=rule.is_mixed)):
            continue
        if is_in_word and not rules.is_random(body[0]):
            continue
        if not rules.is_blank(body[0]) and (not rule.is_mixed or rules.is_mixed(body[0])):
            yield Span(start - rule.lead, body.end(), rule.kind, BY_FORM)
            return


def _keys_without_separator(text: str) -> Iterator[Span]:
    """Find keys that begin with capitals, and private keys, whole or cut off."""
    for kind, pattern in rules.CAPITAL_RULES:
        for match in pattern.finditer(text):
            start = match.start()
            is_fresh = text[start - 1 : start] in ("-", "_") or _is_at_boundary(text, start)
            # One without a dot is no token, and Mapbox's that begin with `pk.` are public.
            is_token = kind != "jwt" or ("." in match[0] and text[max(0, start - 3) : start] != "pk.")
            if is_fresh and is_token and (kind != "access-token" or rules.is_random(match[0])):
                yield Span(*match.span(), kind, BY_FORM)
                if kind == "aws-access-key":
                    yield from _aws_secrets(text, *match.span())
    for begin in rules.PEM_BEGIN.finditer(text):
        end = rules.PEM_END.search(text, begin.end(), begin.end() + rules.PEM_MAX_CHARS)
        if end and _is_base64(text[begin.end() : end.start()]):
            yield Span(begin.start(), end.end(), "private-key", BY_FORM)
        elif lines := rules.PEM_LINES.match(text, begin.end()):
            yield Span(begin.start(), lines.end(), "private-key", BY_FORM)
    for end in rules.PEM_END.finditer(text):
        start = _pem_tail(text, end.start())
        if start < end.start():
            yield Span(start, end.end(), "private-key", BY_FORM)


def _pem_tail(text: str, end: int) -> int:
    """Return where the lines of a key begin of which only the last ones and the END line are there."""
    start, line_end = end, text.rfind("\n", 0, end)
    has_whole_line = False
    while line_end > 0 and end - line_end < rules.PEM_MAX_CHARS:
        line_start = text.rfind("\n", max(0, line_end - 160), line_end) + 1
        if not rules.PEM_LINE.fullmatch(text, line_start, line_end):
            break
        has_whole_line = has_whole_line or line_end - line_start >= 40
        start, line_end = line_start, line_start - 1
    return start if has_whole_line else end


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """Find the secrets near an access key id."""
    # One character more on each side, so that a longer stretch is not cut to forty.
    around = max(0, start - rules.AWS_REACH), end + rules.AWS_REACH
    for match in rules.AWS_SECRET.finditer(text, *around):
        is_whole = match.start() > around[0] or not match.start()
        if is_whole and match.end() < around[1] and rules.is_random(match[0]):
            yield Span(*match.span(), "aws-secret-key", BY_PLACE)


def _is_base64(body: str) -> bool:
    """Say whether a text is nearly all letters and digits; prose between two marks of a key is not."""
    packed = "" if "-----BEGIN" in body else re.sub(r"\\[nr]|\s", "", body)
    letters = sum(map(str.isalnum, packed))
    return letters >= 16 and letters * 10 >= len(packed) * 8


def _url_secrets(text: str) -> Iterator[Span]:
    for url in rules.URL_REST.finditer(text):
        for signature in rules.URL_SIGNATURE.finditer(text, *url.span()):
            yield Span(*signature.span(1), "url-secret", BY_PLACE)
    for path in rules.URL_SECRET_PATH.finditer(text):
        yield Span(*path.span(path.lastindex or 0), "url-secret", BY_PLACE)
    for password in rules.URL_PASSWORD.finditer(text):
        group = password.lastindex or 1
        if not rules.is_template(password[group]):
            yield Span(*password.span(group), "url-password", BY_PLACE)
    for user in rules.URL_USER_TOKEN.finditer(text):
        if rules.is_mixed(user[1]):
            yield Span(*user.span(1), "url-password", BY_PLACE)


def _named_values(text: str, flat: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    covered = 0
    for number, match in enumerate(pattern.finditer(flat)):
        stem = flat[match.start() : match.start() + 3]
        kind = "password" if stem.startswith("pw") else rules.NAME_KINDS.get(stem, "secret")
        name = _name_before(flat, match.start("tail"))
        if match.start() < covered or name is None:
            continue
        start = match.start("tail") - len(name)
        written = text[start : match.start("tail")]
        is_known = rules.WHOLE_NAME[kind].fullmatch(name) is not None
        if not is_known and not _is_other_name(kind, written):
            continue
        is_env = match["sep"] == "=" and bool(
            rules.ENV_NAME.search(text, max(0, start - 16), match.start("sep"))
        )
        value = _value_at(text, match.end(), is_env=is_env, is_xml=match["sep"] == ">")
        before = flat[max(0, start - 160) : start]
        if value is None:
            continue
        is_new = len(value.text) >= _SHORTEST_UNJUDGED and rules.PLACEHOLDER_START not in value.text
        if number >= _MOST_JUDGED and is_new:
            yield Span(value.start, covered := value.end, kind, BY_NAME)
            continue
        if not value.is_quoted and _is_code(text, value, match["sep"]):
            continue
        is_set = _is_setting(text, kind, match, start, value, is_known=is_known)
        if not is_set and name == "pass" and not _is_typed_pass(written, match, value, before):
            continue
        if not is_set and not is_known and not _is_other_value(kind, written, value):
            continue
        if is_set or _is_secret(kind, match, value, before):
            rest = rules.LONG_REST.match(text, value.end) if len(value.text) >= rules.LONG_VALUE else None
            covered = rest.end() if rest else value.end
            yield Span(value.start, covered, kind, BY_NAME)


def _is_setting(
    text: str, kind: str, match: re.Match[str], start: int, value: "_Value", *, is_known: bool
) -> bool:
    """Say whether a file or a command line sets a secret: there any word may be the value.

    In code a word behind a name is a variable or a type. So the form must be one that code does not have:
    `DB_PASSWORD=…`, `--password=…`, `?token=…`, `Password=…;` among pairs, `password: …` alone on its line,
    `password = …` below a `[section]`.
    """
    separator, written = match["sep"], text[start : match.start("sep")]
    is_number = kind != "password" and value.text.isdigit()
    is_word = rules.is_chosen_word(value.text) or (
        kind == "password" and value.is_quoted and rules.is_spaced_phrase(value.text)
    )
    if match["close"] or is_number or "=" in value.text or not is_word:
        return False
    before = text[max(0, start - 24) : start]
    if separator == "=":
        return written.isupper() or not start or before.endswith(rules.SETTING_LEADS)
    is_alone = rules.VALUE_END.match(text, value.end) is not None
    is_one_case = value.text in (value.text.lower(), value.text.upper()) or any(map(str.isdigit, value.text))
    if value.is_quoted or len(value.text) < 8 or not is_alone:
        return False
    # `secret: db-tls-2` names one; `Secret: …` and headers such as `X-Auth-Token: …` give one.
    is_given = is_one_case if kind == "password" else is_known and rules.has_three_sorts(value.text)
    if not is_given:
        return False
    if separator.strip(" \t") == ":":
        return separator != ":"
    is_ini = (
        kind == "password" and separator.strip(" \t") == "=" and rules.LINE_LEAD.search(before) is not None
    )
    return is_ini and rules.SECTION.search(text, max(0, start - 2_000), start) is not None


def _is_other_name(kind: str, written: str) -> bool:
    """Say whether a name that names no secret by itself does so beside a value that was drawn by chance."""
    if kind == "password":
        return rules.PASS_NAME.fullmatch(written) is not None
    if kind == "secret":
        return rules.OTHER_SECRET.fullmatch(written) is not None
    if kind != "api-key" or not rules.OTHER_KEY.fullmatch(written):
        return False
    words = [word.lower() for word in rules.NAME_WORD.findall(written)]
    return rules.HARMLESS_KEYS.isdisjoint(words[-3:-1])


def _is_other_value(kind: str, written: str, value: "_Value") -> bool:
    if kind in ("api-key", "secret"):
        shortest = 12 if kind == "secret" else 16
        return rules.is_other_key_value(value.text, is_capital=written.isupper(), shortest=shortest)
    if written.isupper():
        return not value.text.isalpha() and not value.text.isdigit()
    return _is_strong(value)


def _is_strong(value: "_Value") -> bool:
    return rules.is_told_value(value.text) if value.is_quoted else rules.is_strong_value(value.text)


def _is_typed_pass(written: str, match: re.Match[str], value: "_Value", before: str) -> bool:
    """Say whether `pass` stands for a password here: mostly it is a verb."""
    is_named = bool(match["close"]) or rules.PROSE_LOGIN.search(before) is not None
    is_variable = written == "PASS" and match["sep"] == "=" and not value.text.isdigit()
    is_beside_user = value.is_quoted and rules.USER_FIELD.search(before) is not None
    if is_named or is_variable or is_beside_user:
        return not value.text.isalpha() or rules.is_gibberish(value.text)
    # `PASS: TestName/case_2` is what a test prints.
    is_field = written == "pass" and match["sep"].strip(" \t") in ("=", ":")
    return is_field and _is_strong(value)


def _name_before(flat: str, end: int) -> str | None:
    """Return the whole name that ends here, or None inside one of our own placeholders."""
    start = end
    while start > max(0, end - rules.NAME_REACH) and (flat[start - 1].isalnum() or flat[start - 1] in "_-."):
        start -= 1
    if flat.endswith(rules.PLACEHOLDER_START, 0, start):
        return None
    # "API key: …" in prose and settings pages.
    if flat.startswith("key", start) and (lead := rules.KEY_LEAD.search(flat, max(0, start - 10), start)):
        start = lead.start()
    return flat[start:end].lstrip("-.")


class _Value(NamedTuple):
    start: int
    end: int
    text: str
    is_quoted: bool


def _value_at(text: str, start: int, *, is_env: bool, is_xml: bool) -> _Value | None:
    if is_xml:
        end = text.find("<", start)
        return _Value(start, end, text[start:end], True)
    opening = rules.QUOTE_OPEN.match(text, start)
    if opening:
        start = opening.end()
        end = _closing_quote(text, start, opening[1])
        if end >= 0 and "\n" not in text[start:end]:
            return _Value(start, end, text[start:end], True)
    # The value of an environment line reaches to the next space, whatever it is made of; so does one whose
    # closing quote was cut off.
    bare = (rules.LINE_VALUE if is_env or opening else rules.BARE_VALUE).match(text, start)
    value = bare[0].rstrip(".,:;") if bare else ""
    if not is_env and text[start + len(value) : start + len(value) + 1] in rules.MARKS:
        marked = rules.BARE_WITH_MARKS.match(text, start)
        whole = marked[0].rstrip(rules.MARKS + ".,:;") if marked else ""
        is_code = "=" in whole.rstrip("=") or not rules.has_three_sorts(whole)
        if len(whole) > len(value) and not is_code and rules.is_drawn(whole):
            return _Value(start, start + len(whole), whole, True)
    return _Value(start, start + len(value), value, is_env) if value else None


def _closing_quote(text: str, start: int, mark: str) -> int:
    """Return where the closing quote is: `\\"` within `"…"` is none, nor is `\\\\\\"` within `\\"…\\"`."""
    first = end = text.find(mark, start, start + _QUOTED_REACH)
    while end >= 0:
        quote = end + len(mark) - 1
        before = quote - len(text[start:quote].rstrip("\\")) - start
        if (before - len(mark) + 1) % (2 * len(mark)) == 0:
            return end
        end = text.find(mark, quote + 1, start + _QUOTED_REACH)
    # A shell knows no escapes within single quotes.
    return first


def _is_code(text: str, value: _Value, separator: str = "=") -> bool:
    """Say whether an unquoted value goes on as an expression or stands where code puts a variable."""
    # "Das Passwort lautet …, bitte": words stand between them, so what follows is a sentence's.
    if separator.strip(" \t:").isalpha() and text[value.end : value.end + 1] in (",", ":", ")"):
        return False
    following = text[value.end : value.end + 1] or " "
    is_variable = following in "),:}" and value.text.isidentifier() and not rules.is_random(value.text)
    return following in "([{<" or is_variable


# Between a name and what need not be its value: an argument, a default, a list, an arrow.
_LOOSE_SEPARATORS: Final = (",", "(", "[", "{", "||", "??", "or", "->")


def _is_secret(kind: str, match: re.Match[str], value: _Value, before: str) -> bool:
    separator = match["sep"].strip(" \t*")
    is_field = before.endswith(('name="', "name='"))
    # `class="token">` names no value, nor does a word inside `arn:…:secret:…` or `AWS::IAM::AccessKey`.
    if separator == ">" and match["close"] and not is_field:
        return False
    if before.endswith("::") or (separator == ":" and before.endswith(":")):
        return False
    if separator.endswith(_LOOSE_SEPARATORS):
        return rules.is_told_value(value.text) and not rules.is_hexadecimal(value.text)
    has_digit = any(map(str.isdigit, value.text))
    if separator.endswith("==") or separator.startswith("!"):
        is_placed = value.is_quoted
    elif separator.isalpha():
        is_placed = has_digit or rules.is_gibberish(value.text) or rules.is_passphrase(value.text)
    elif separator:
        is_placed = True
    elif match["close"] or value.text.startswith("-"):
        is_placed = False
    else:
        is_sql = value.is_quoted and ((kind == "password" and has_digit) or rules.is_told_value(value.text))
        is_used = rules.PROSE_USE.search(before) is not None and rules.is_mixed_word(value.text)
        # A name in code has no such mark.
        is_odd = rules.is_told_value(value.text) and not value.text.isalnum()
        is_owned = is_odd and rules.PROSE_OWN.search(before) is not None
        is_typed = (rules.PROSE_LOGIN.search(before) is not None and has_digit) or (
            kind == "password" and (is_used or is_owned)
        )
        is_netrc = rules.NETRC_LOGIN.search(before) is not None
        is_placed = is_sql or is_typed or is_netrc or before.endswith((" -", "--"))
    if kind == "password" and rules.is_passphrase(value.text):
        return is_placed
    is_password = kind == "password" or (kind == "secret" and value.is_quoted and len(value.text) >= 8)
    judge = rules.is_password_value if is_password else rules.is_key_value
    return is_placed and judge(value.text, is_quoted=value.is_quoted)


def _authorizations(text: str, flat: str) -> Iterator[Span]:
    for match in rules.AUTH.finditer(flat):
        name = _name_before(flat, match.start() + 4)
        if name is None:
            continue
        if match["pair"]:
            start, end = match.span("pair")
            if rules.is_password_value(text[start:end], is_quoted=True):
                yield Span(start, end, "password", BY_PLACE)
            continue
        value = rules.AUTH_VALUE.match(text, match.end())
        if value is None or _is_code(text, _Value(*value.span(), value[0], is_quoted=False)):
            continue
        if match["scheme"]:
            is_secret = rules.is_credential(value[0])
        else:
            start = match.start() + 4 - len(name)
            is_named = not match["comma"] and not flat.endswith("::", 0, start)
            is_secret = is_named and rules.is_key_value(value[0], is_quoted=match["quote"] is not None)
        if is_secret:
            yield Span(*value.span(), "authorization", BY_PLACE)


def _bearers(text: str, flat: str) -> Iterator[Span]:
    for match in rules.BEARER.finditer(flat):
        value = rules.AUTH_VALUE.match(text, match.end())
        if value and rules.is_random(value[0]) and not rules.is_ordinary(value[0]):
            yield Span(*value.span(), "authorization", BY_PLACE)


def _kubernetes_secrets(text: str, flat: str) -> Iterator[Span]:
    """Find the values in the data of Secrets, as YAML or JSON."""
    done = 0
    for kind in rules.K8S_SECRET.finditer(flat):
        if kind.start() < done:
            continue
        start = max(done, kind.start() - rules.K8S_REACH)
        for begin in rules.K8S_DOCUMENT.finditer(flat, start, kind.start()):
            start = begin.end()
        following = rules.K8S_DOCUMENT.search(flat, kind.end(), kind.end() + rules.K8S_REACH)
        done = following.start() if following else kind.end() + rules.K8S_REACH
        for data in rules.K8S_DATA.finditer(flat, start, done):
            indent = len(data["indent"] or "")
            entry = rules.K8S_ENTRY.match(text, data.end())
            while entry and (entry["indent"] is None or len(entry["indent"]) > indent):
                name = "bare" if entry["quoted"] is None else "quoted"
                if len(entry[name]) >= 4 and not rules.is_template(entry[name]):
                    yield Span(*entry.span(name), "kubernetes-secret", BY_PLACE)
                entry = rules.K8S_ENTRY.match(text, entry.end())


def _cookies(text: str, flat: str) -> Iterator[Span]:
    for match in rules.COOKIE_HEADER.finditer(flat):
        if _name_before(flat, match.start() + 6) is None:
            continue
        pair = rules.COOKIE_PAIR.match(text, match.end())
        while pair:
            is_attribute = pair[1].lower() in rules.COOKIE_ATTRIBUTES
            if len(pair[2]) >= 6 and not is_attribute and not rules.is_ordinary(pair[2]):
                yield Span(*pair.span(2), "cookie", BY_PLACE)
            pair = rules.COOKIE_PAIR.match(text, pair.end())


_FLAT_RULES: Final = (("auth", _authorizations), ("cookie", _cookies), ("bearer ", _bearers))
_WORDS: Final = frozenset(
    {
        *(word for word, _ in rules.NAMES),
        *(hint for hint, _ in _FLAT_RULES),
        *secret_context.WORDS,
        *PLACE_STEMS,
    }
)


def _merge_spans(spans: list[Span]) -> list[Span]:
    """Unite spans that overlap, under the kind that says most."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            best = min(last, span, key=lambda each: each.rank)
            merged[-1] = Span(last.start, max(last.end, span.end), best.kind, best.rank)
        else:
            merged.append(span)
    return merged


def _with_repeats(text: str, spans: list[Span]) -> list[Span]:
    """Add the other places of the secrets that were found, and give one secret one kind."""
    kinds: dict[str, Span] = {}
    for span in spans:
        value = text[span.start : span.end]
        if value not in kinds or span.rank < kinds[value].rank:
            kinds[value] = span
    echoes: list[Span] = []
    for value, span in list(kinds.items())[:_MOST_ECHOED]:
        if not rules.is_distinctive(value):
            continue
        at = text.find(value)
        while at >= 0:
            is_apart = not text[at - 1 : at].isalnum() or _is_at_boundary(text, at)
            if is_apart and not text[at + len(value) : at + len(value) + 1].isalnum():
                echoes.append(Span(at, at + len(value), span.kind, BY_ECHO))
            at = text.find(value, at + len(value))
    named = [span._replace(kind=kinds[text[span.start : span.end]].kind) for span in spans]
    return _merge_spans(named + echoes)


def clean_text(text: str) -> str:
    """Return a text without secrets and without control characters."""
    return _redact_exactly(without_controls(text))


def refuse_secret(what: str, name: str) -> None:
    """Refuse a name that holds a secret: redacted, it would name something else."""
    if redact(name).found:
        raise RecordError(f"{what}: holds a secret", hint="names are shown everywhere: choose another")


def validate_name(what: str, name: str) -> str:
    """Return a name on one line, or refuse it when it holds a secret."""
    told = " ".join(without_controls(replace_surrogates(name)).split())
    refuse_secret(what, told)
    return told


def validate_path(what: str, path: str) -> str:
    """Return a path unchanged, or refuse it: a changed path would lead nowhere."""
    refuse_secret(what, path)
    if without_controls(path) != path or "\n" in path:
        raise RecordError(f"{what}: {path!r} holds control characters", hint="choose another name")
    return path


_LABEL_FIELDS: Final = ("element", "label", "selector", "key", "name")


def without_secrets(value: object, *, is_exact: bool = False) -> object:
    """Return the value with the secrets in all its texts redacted, whatever its type.

    Control characters go too, unless the value must come back exactly as it was given.
    """
    clean = _redact_exactly if is_exact else clean_text

    def clean_value(value: object, name: object = None) -> object:
        if isinstance(value, Mapping):
            # `{"element": "Password input", "text": …}`: the name stands in a field beside the value.
            label = next((str(value[name]) for name in _LABEL_FIELDS if name in value), "")
            is_labelled = rules.SECRET_LABEL.search(label) is not None
            return {
                clean(key) if isinstance(key, str) else key: clean_value(
                    item, "password" if is_labelled and key in ("value", "text") else key
                )
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [clean_value(item) for item in value]
        if not isinstance(value, str):
            return value
        # The name alone can say that the value is a secret: `password`.
        beginning = f"{name}=" if isinstance(name, str) and "=" not in name else ""
        cleaned = clean(f"{beginning}{value}")
        return cleaned.removeprefix(beginning) if cleaned.startswith(beginning) else clean(value)

    return clean_value(value)


def _redact_exactly(text: str) -> str:
    return redact(replace_surrogates(text)).text
