import { parseDigest, type Sha256Digest } from './digest.ts'
import { RefError, tried } from './errors.ts'
import { foldAscii } from './fold.ts'
import { assertLength, quote } from './length.ts'
import { isQuant } from './quant.ts'
import type { RepoId } from './repo.ts'
import { assertRepoId } from './repo-id.ts'
import { isTag, parseTag } from './tag.ts'

const PREFIX = 'svc:///'

/** A reference with a selector: `svc:///ns/name:quant`, `…:tag+quant`, either with an optional `@digest` pin. */
export interface SelectorRef extends RepoId {
  /** As typed: a member's quant or a prefix of it. */
  readonly quant: string
  /** Case as typed. */
  readonly tag?: string
  /** The manifest digest that the selected member must have. */
  readonly digest?: Sha256Digest
}

/** `svc:///ns/name@sha256:<hex>`: names a manifest directly, without any index. */
export interface DigestRef extends RepoId {
  readonly quant?: undefined
  readonly tag?: undefined
  readonly digest: Sha256Digest
}

/** A parsed reference (spec ref.1, ref.2). `ref.quant === undefined` tells the two shapes apart. */
export type ModelRef = SelectorRef | DigestRef

/** Parses everything after `svc:///`. The checks run in the order of spec ref.4. */
function parseBody(body: string): ModelRef {
  const at = body.indexOf('@')
  const digest = at < 0 ? undefined : parseDigest(body.slice(at + 1))
  const head = at < 0 ? body : body.slice(0, at)

  const slash = head.indexOf('/')
  const colon = head.indexOf(':', slash + 1)
  const path = foldAscii(colon < 0 ? head : head.slice(0, colon))
  const repo =
    slash < 0
      ? assertRepoId(path.split(':', 1)[0] as string, '')
      : assertRepoId(path.slice(0, slash), path.slice(slash + 1))

  if (colon < 0 && digest !== undefined) return { ...repo, digest }
  const selector = parseSelector(colon < 0 ? '' : head.slice(colon + 1), repo)
  return digest === undefined ? { ...repo, ...selector } : { ...repo, ...selector, digest }
}

function parseSelector(text: string, repo: RepoId): { quant: string; tag?: string } {
  const canonical = `${PREFIX}${repo.ns}/${repo.name}`
  if (text === '') {
    throw new RefError('no-selector', `a quant is required, there is no default; write ${canonical}:<quant>`, {
      repo,
      suggestion: `${canonical}:<quant>`
    })
  }
  if (isQuant(text)) return { quant: text }

  const plus = text.indexOf('+')
  if (plus < 0) throw refuseBareSelector(text, repo, canonical)
  const quant = text.slice(plus + 1)
  let tag: string
  try {
    tag = parseTag(text.slice(0, plus))
  } catch (error) {
    if (error instanceof RefError) throw new RefError(error.reason, error.message, { repo })
    throw error
  }
  if (quant === '') {
    throw new RefError('bare-tag', `the tag ${quote(tag)} needs a quant; write ${canonical}:${tag}+<quant>`, {
      repo,
      suggestion: `${canonical}:${tag}+<quant>`
    })
  }
  if (!isQuant(quant)) throw refuseQuant(quant, repo)
  return { quant, tag }
}

function refuseBareSelector(text: string, repo: RepoId, canonical: string): RefError {
  const space = text.indexOf(' ')
  if (space > 0 && isTag(text.slice(0, space)) && isQuant(text.slice(space + 1))) {
    const suggestion = `${canonical}:${text.replace(' ', '+')}`
    return new RefError(
      'bare-tag',
      `${quote(text)} contains a space: a "+" in a query string decodes to one; for ${suggestion} send the "+" as %2B`,
      { repo, suggestion }
    )
  }
  if (isTag(text)) {
    return new RefError(
      'bare-tag',
      `${quote(text)} is not a quant, and a tag alone is not a selector; write ${canonical}:${
        text
      }+<quant> (in a query string send "+" as %2B)`,
      { repo, suggestion: `${canonical}:${text}+<quant>` }
    )
  }
  return refuseQuant(text, repo)
}

function refuseQuant(text: string, repo: RepoId): RefError {
  const folded = foldAscii(text)
  if (folded !== text && isQuant(folded)) {
    return new RefError('quant-format', `quants are lower-case: write ${quote(folded)}, not ${quote(text)}`, { repo })
  }
  const hint = folded.startsWith('sha256:')
    ? '; a digest follows "@", not ":"'
    : text.includes('%')
      ? '; references are not percent-decoded, write the characters themselves'
      : text.trim() !== text
        ? '; remove the white space, nothing is trimmed'
        : ', such as q4_k_m, bf16 or raw'
  return new RefError('quant-format', `${quote(text)} is not a quant${hint}`, { repo })
}

/** The error for text that does not begin with `svc:///`; its message names the fix. */
function refuseStart(text: string): RefError {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):(\/+)/.exec(text)
  if (scheme !== null || foldAscii(text.slice(0, 4)) === 'svc:') {
    const fix = canonicalOf(text.slice(scheme?.[0].length ?? 4))
    return text.startsWith('svc:')
      ? new RefError(
          'authority',
          `"svc:" must be followed by exactly three slashes and no authority; write ${fix.text}`,
          fix
        )
      : new RefError(
          'scheme',
          `the scheme must be "svc", in lower case, not ${quote(text.split(':', 1)[0] as string)}; write ${fix.text}`,
          fix
        )
  }
  const fix = canonicalOf(text)
  return fix.suggestion === undefined
    ? new RefError('scheme', `${quote(text)} does not begin with "svc:///"; write ${fix.text}`)
    : new RefError('short-form', `the short form is not accepted here; write ${fix.text}`, fix)
}

/** The canonical spelling of a short form, to suggest in an error; `<quant>` stands for a missing quant. */
function canonicalOf(short: string): { text: string; suggestion?: string; repo?: RepoId } {
  try {
    const ref = parseBody(short)
    const suggestion = formatRef(ref)
    return { text: suggestion, suggestion, repo: { ns: ref.ns, name: ref.name } }
  } catch (error) {
    if (!(error instanceof RefError)) throw error
    const { repo } = error
    if (repo === undefined) return { text: 'svc:///ns/name:quant' }
    const suggestion = error.suggestion ?? `${PREFIX}${repo.ns}/${repo.name}:<quant>`
    return { text: suggestion, suggestion, repo }
  }
}

/**
 * Reads the canonical form `svc:///ns/name[:sel][@digest]` (spec ref.1 to ref.9). `ns` and `name` are lower-cased
 * (ASCII only), everything else is kept; nothing is trimmed or percent-decoded. Safe for input of any length.
 * @throws RefError `E_LENGTH` over 512 UTF-8 bytes, else `E_PARSE` with its `reason`; the message names the fix.
 */
export function parseRef(text: string): ModelRef {
  assertLength(text)
  if (!text.startsWith(PREFIX)) throw refuseStart(text)
  return parseBody(text.slice(PREFIX.length))
}

/** Like {@link parseRef}, or undefined. */
export const tryParseRef = (text: string): ModelRef | undefined => tried(() => parseRef(text))

/**
 * Parses what a person types at a command line: the short form `ns/name[:sel][@digest]` or the canonical one. The API
 * accepts only the canonical one; send `formatRef(parseShortRef(text))`.
 * @throws RefError as {@link parseRef}.
 */
export function parseShortRef(text: string): ModelRef {
  assertLength(text)
  if (foldAscii(text.slice(0, 4)) === 'svc:') return parseRef(text)
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(text))
    throw new RefError('scheme', `${quote(text)} has another scheme; write ns/name:quant or svc:///ns/name:quant`)
  return parseBody(text)
}

/** Like {@link parseShortRef}, or undefined. */
export const tryParseShortRef = (text: string): ModelRef | undefined => tried(() => parseShortRef(text))

/**
 * The short form, `ns/name[:sel][@digest]`; {@link parseShortRef} reads it back.
 * @throws RefError when a part is not canonical.
 */
export function formatShortRef(ref: ModelRef): string {
  const { ns, name } = assertRepoId(ref.ns, ref.name)
  const pin = ref.digest === undefined ? '' : `@${parseDigest(ref.digest)}`
  if (ref.quant === undefined) {
    if (pin === '') throw new RefError('no-selector', 'a reference needs a quant or a digest', { repo: { ns, name } })
    return `${ns}/${name}${pin}`
  }
  if (!isQuant(ref.quant)) throw refuseQuant(ref.quant, { ns, name })
  const tag = ref.tag === undefined ? '' : `${parseTag(ref.tag)}+`
  return `${ns}/${name}:${tag}${ref.quant}${pin}`
}

/** The canonical form; inverts {@link parseRef}. @throws RefError when a part is not canonical. */
export const formatRef = (ref: ModelRef): string => PREFIX + formatShortRef(ref)
