import { ggufQuant, normalizedName, RAW } from '@svc/classify'
import type { Inventory } from '@svc/client'
import {
  formatRef,
  formatShortRef,
  isQuant,
  isReservedNamespace,
  parseRef,
  parseRepoId,
  parseShortRef,
  RefError,
  tryParseRepoId,
  tryParseShortRef,
  tryParseTypedDigest
} from '@svc/ref'
import { CliError, usage } from '../errors.ts'
import { type HubSource, tryParseHubAddress } from '../hub/hub-source.ts'
import type { Session } from '../session.ts'
import { repositoryIn } from './models-here.ts'
import { unknownHere, unknownRepository } from './unknown-here.ts'

/**
 * The canonical form of what was typed: short or canonical, in any case; without a selector, the repository's only
 * quant. If only the selector is wrong, the error lists the alternatives. @throws RefError, CliError
 */
export async function canonicalRef(session: Session, typed: string): Promise<string> {
  const text = await fullName(session, typed)
  const repo = asRepo(text)
  if (repo !== undefined) return loneMember(session, repo)
  try {
    return formatRef(parseShortRef(foldCase(text)))
  } catch (error) {
    if (!(error instanceof RefError) || error.repo === undefined) throw error
    const { ns, name } = error.repo
    const inventory = await session.client.models().catch(() => undefined)
    const entry = inventory && repositoryIn(inventory, `${ns}/${name}`)
    if (entry === undefined) throw error
    const candidates = entry.quants.map((quant) => `${ns}/${name}:${quant}`)
    const message = SELECTOR_REASONS.has(error.reason)
      ? whatIsWrong(`${ns}/${name}`, text, inventory?.tags ?? [])
      : error.message
    // like a well-formed quant that is not here
    const isAbsent = SELECTOR_REASONS.has(error.reason) && !isBareTag(`${ns}/${name}`, text, inventory?.tags ?? [])
    const code = isAbsent ? 'E_NO_MEMBER' : error.code
    throw new CliError(isAbsent ? 'notFound' : 'usage', message, { code, candidates, cause: error })
  }
}

/** A name without its namespace, and what it selects. */
const LONE_NAME = /^([a-z0-9][a-z0-9._-]*)(:[^/@]+)?$/i

/**
 * The name here of what was typed: a lone name gets its namespace; an address of the hub, or a name of Ollama's, that of
 * the model that came from there. Returns anything else unchanged. @throws CliError unless one model has a lone name
 */
export async function fullName(session: Session, typed: string): Promise<string> {
  const text = await nameHere(session, typed)
  const [, name, selector = ''] = LONE_NAME.exec(text) ?? []
  if (name === undefined || tryParseTypedDigest(text) !== undefined) return text
  const { namespaces } = await session.client.models()
  const found = namespaces.filter((entry) => entry.name === name.toLowerCase())
  if (found.length === 0) {
    const like = namespaces.filter((entry) => entry.name.includes(name.toLowerCase()))
    throw unknownHere(
      name,
      like.map((entry) => `${entry.ns}/${entry.name}`),
      { isWanted: false }
    )
  }
  const candidates = found.map((entry) => `${entry.ns}/${entry.name}${selector}`)
  if (candidates.length === 1) return candidates[0]!
  throw new CliError('usage', `${candidates.length} models here are named ${name}`, { code: 'E_PARSE', candidates })
}

/** The name here of an address of the hub or of Ollama's registry, and of a name with Ollama's tag; else the text. */
export async function nameHere({ client }: Session, text: string): Promise<string> {
  const address = tryParseHubAddress(text)
  const tagged = OLLAMA.exec(text)
  if (address === undefined && !isOllamas(tagged)) return text
  if (address !== undefined) return hubNameHere(await client.models(), address)
  // what is malformed is said without the daemon, too
  const inventory = await client.models().catch(() => undefined)
  if (inventory === undefined) return text
  const [, ns, name = '', tag = ''] = tagged!
  const isRepo = (entry: Inventory['namespaces'][number], wanted: string): boolean =>
    entry.name === wanted.toLowerCase() && (ns === undefined || entry.ns === ns.toLowerCase())
  const plain = `${ns === undefined ? '' : `${ns}/`}${name}${tag === '' ? '' : `:${tag}`}`
  // a model of that name has quants, not tags
  if (inventory.namespaces.some((entry) => isRepo(entry, name))) return plain
  const words = tag.toLowerCase().split('-')
  const quant = words.findIndex((_, i) => isQuant(words.slice(i).join('-')))
  const version = (quant < 0 ? words : words.slice(0, quant)).join('-')
  const adopted = version === '' || version === 'latest' ? name : `${name}-${version}`
  const found = inventory.namespaces.filter((entry) => isRepo(entry, adopted))
  if (found.length !== 1) return plain
  return `${found[0]!.ns}/${found[0]!.name}${quant < 0 ? '' : `:${words.slice(quant).join('-')}`}`
}

/** Whether it is an address of that registry, or has a tag that is no quant. */
function isOllamas(found: RegExpExecArray | null): boolean {
  if (found === null) return false
  const tag = found[3]?.toLowerCase()
  return isOllamaAddress(found[0]) || (tag !== undefined && !isQuant(tag))
}

/** An address of Ollama's registry. */
export const isOllamaAddress = (text: string): boolean =>
  /^(?:https?:\/\/)?(?:registry\.)?ollama\.(?:com|ai)\//i.test(text)

/** `qwen3:4b`, perhaps with a namespace, or behind the registry's address, where `library/` means none. */
const OLLAMA =
  /^(?:(?:https?:\/\/)?(?:registry\.)?ollama\.(?:com|ai)\/(?:library\/)?)?(?:([a-z0-9][\w.-]*)\/)?([a-z0-9][\w.-]*)(?::([\w.-]+))?$/i

function hubNameHere({ namespaces }: Inventory, { repo, quant, file }: HubSource): string {
  const id = (repo.includes('/') ? repo : `hf.co/${repo}`).toLowerCase()
  const cameFromThere = ({ members }: Inventory['namespaces'][number]): boolean =>
    members.some(({ origin }) => origin?.repo?.toLowerCase() === repo.toLowerCase())
  const entry = namespaces.find(({ ns, name }) => `${ns}/${name}` === id) ?? namespaces.find(cameFromThere)
  const ofFile = file === undefined ? undefined : ggufQuant(normalizedName(file.split('/').at(-1)!))
  const selector = quant ?? (ofFile === RAW ? undefined : ofFile)
  return `${entry === undefined ? id : `${entry.ns}/${entry.name}`}${selector === undefined ? '' : `:${selector}`}`
}

const SELECTOR_REASONS: ReadonlySet<string> = new Set(['quant-format', 'bare-tag'])

const selectorOf = (text: string): string => /:([^@]*)/.exec(text.replace(/^svc:/, ''))?.[1] ?? ''

/** Whether a tag of the repository stands where a quant has to follow. */
const isBareTag = (repo: string, text: string, tags: Inventory['tags']): boolean =>
  tags.some((each) => each.repo === repo && each.tag === selectorOf(text))

function whatIsWrong(repo: string, text: string, tags: Inventory['tags']): string {
  const selector = selectorOf(text)
  const plus = selector.lastIndexOf('+')
  const wrong = `${repo} has no quant ${JSON.stringify(selector.slice(plus + 1))}`
  return isBareTag(repo, text, tags) ? `${wrong}; write a tag before a quant, as in ${repo}:${selector}+QUANT` : wrong
}

const SELECTED = /^((?:svc:\/\/\/)?[^:@+#]+):([^@]*)(@.*)?$/

/** Lower-cases quants; a tag (before `+`) keeps its case. */
function foldCase(text: string): string {
  const match = SELECTED.exec(text)
  if (match === null) return text
  const [, repo, selector, pin = ''] = match as unknown as [string, string, string, string | undefined]
  const plus = selector.lastIndexOf('+')
  return `${repo}:${selector.slice(0, plus + 1)}${selector.slice(plus + 1).toLowerCase()}${pin}`
}

async function loneMember(session: Session, repo: string): Promise<string> {
  const inventory = await session.client.models()
  const entry = repositoryIn(inventory, repo)
  if (entry === undefined) throw unknownRepository(inventory, repo)
  const [only, ...others] = entry.quants
  if (only !== undefined && others.length === 0) return `svc:///${repo}:${only}`
  const candidates = entry.quants.map((quant) => `${repo}:${quant}`)
  throw new CliError('usage', `${repo} has ${candidates.length} quants here; name one`, {
    code: 'E_PARSE',
    candidates
  })
}

/** The short form of a canonical reference, for display. */
export const shortRef = (text: string): string => formatShortRef(parseRef(text))

/** Parses `ns/name` without a selector, lower-cased; undefined for anything else. */
export function asRepo(text: string): string | undefined {
  if (tryParseShortRef(text) !== undefined) return undefined
  const repo = tryParseRepoId(text.replace(/^svc:\/\/\//, ''), { foldCase: true })
  return repo === undefined ? undefined : `${repo.ns}/${repo.name}`
}

/** The name to import into. @throws CliError as {@link nameNeeded}; RefError */
export function importName(as: string | undefined, source: string): string {
  if (as === undefined) throw nameNeeded(source)
  const { ns, name } = parseRepoId(as, { foldCase: true })
  if (isReservedNamespace(ns)) throw usage(`the namespace "${ns}" is reserved; choose another one`)
  return `${ns}/${name}`
}

/** The refusal of an import without a name, which suggests one derived from `source`. */
export function nameNeeded(source: string): CliError {
  const words = source.replace(/\/+$/, '').split('/').at(-1) ?? ''
  const plain = words.toLowerCase().replace(/\.(gguf|safetensors)$/, '')
  const whole = plain.replace(/[^a-z0-9._-]+/g, '-').replace(/^[^a-z0-9]+/, '')
  // separate the quant from the name
  const [, base = whole, end = ''] = /^(.+)[-._]((?:ud-)?[a-z0-9_]+)$/.exec(whole) ?? []
  const name = isQuant(end) ? base : whole
  return usage('an import needs a name for the model', `add --as my/${name.slice(0, 128) || 'model'}`)
}

/** The artifacts of some references; `ns/name` stands for all its quants. @throws as {@link canonicalRef} */
export async function refsOf(session: Session, texts: readonly string[]): Promise<string[]> {
  const refs: string[] = []
  for (const text of texts) refs.push(...(await quantsOf(session, text)))
  return refs
}

async function quantsOf(session: Session, typed: string): Promise<readonly string[]> {
  const text = await fullName(session, typed)
  const repo = asRepo(text)
  if (repo === undefined) return [await canonicalRef(session, text)]
  const entry = repositoryIn(await session.client.models(), repo)
  if (entry === undefined) throw unknownHere(repo, [], { isWanted: false })
  return entry.quants.map((quant) => `svc:///${repo}:${quant}`)
}

/** Changes the artifacts of some references, and prints each as it is done. @returns the answers */
export async function changeEach<T>(
  session: Session,
  texts: readonly string[],
  change: (ref: string) => Promise<T>
): Promise<T[]> {
  const answers: T[] = []
  for (const ref of await refsOf(session, texts)) {
    answers.push(await change(ref))
    if (!session.json) session.print(shortRef(ref))
  }
  return answers
}
