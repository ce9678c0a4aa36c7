import {
  formatRef,
  formatShortRef,
  isDigest,
  parseRef,
  parseRepoId,
  parseShortRef,
  RefError,
  tryParseRepoId,
  tryParseShortRef
} from '@svc/ref'
import { CliError, usage } from './errors.ts'
import { EXIT } from './exit-codes.ts'
import type { Session } from './session.ts'

/**
 * The canonical form of what was typed, short or canonical. Where only the selector is wrong, the error lists what the
 * repository has here.
 * @throws RefError, CliError
 */
export async function canonicalRef(session: Session, text: string): Promise<string> {
  try {
    return formatRef(parseShortRef(text))
  } catch (error) {
    if (!(error instanceof RefError) || error.repo === undefined) throw error
    const { ns, name } = error.repo
    const inventory = await session.client.models().catch(() => undefined)
    const entry = inventory?.namespaces.find((candidate) => candidate.ns === ns && candidate.name === name)
    if (entry === undefined) throw error
    const candidates = entry.quants.map((quant) => `${ns}/${name}:${quant}`)
    throw new CliError(EXIT.usage, error.message, { code: error.code, candidates, cause: error })
  }
}

/** The short form of a canonical reference, for display. */
export const shortRef = (text: string): string => formatShortRef(parseRef(text))

const HEX = /^[0-9a-f]{64}$/

/** `sha256:<hex>` or bare hex, as the canonical digest; undefined for anything else. */
export function asDigest(text: string): string | undefined {
  if (isDigest(text)) return text
  return HEX.test(text) ? `sha256:${text}` : undefined
}

/** `ns/name` without a selector, lower-cased; undefined for anything else. */
export function asRepo(text: string): string | undefined {
  if (tryParseShortRef(text) !== undefined) return undefined
  const repo = tryParseRepoId(text.replace(/^svc:\/\/\//, ''), { foldCase: true })
  return repo === undefined ? undefined : `${repo.ns}/${repo.name}`
}

/** The name to import into; without one, an error that suggests one made from `source`. @throws CliError, RefError */
export function importName(as: string | undefined, source: string): string {
  if (as === undefined) {
    const words = source.replace(/\/+$/, '').split('/').at(-1) ?? ''
    const plain = words.toLowerCase().replace(/\.(gguf|safetensors)$/, '')
    const name = plain.replace(/[^a-z0-9._-]+/g, '-').replace(/^[^a-z0-9]+/, '')
    throw usage('an import needs a name to keep the model under', `add --as my/${name.slice(0, 128) || 'model'}`)
  }
  const { ns, name } = parseRepoId(as)
  return `${ns}/${name}`
}
