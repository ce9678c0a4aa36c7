import { ClassifyError, globTest } from '@svc/classify'
import { ConfigError } from '../errors.ts'
import { absolutePath } from './path.ts'

export const TRUST_KEYS = {
  names: {
    type: 'strings',
    summary: 'models that the rule is for: "ns/name", with "*" in both; the first rule that matches applies'
  },
  mode: { type: 'string', summary: '"off", "warn" or "require"; with "inspect" it may be absent, for "off"' },
  inspect: {
    type: 'string',
    summary: '"warn" or "refuse": models that svc inspect finds to run code or to be malformed'
  },
  keys: { type: 'strings', summary: 'files with public keys (PEM) of signers' },
  certificates: {
    type: 'strings',
    summary: "files with certificates (PEM) that the signers' certificates must lead to"
  },
  identities: { type: 'identities', summary: 'identities of signers: { issuer, subject }' },
  root: { type: 'string', summary: 'file with the trust root (trusted_root.json) for identities' }
} as const

export interface TrustTable {
  readonly names?: readonly string[]
  readonly mode?: string
  readonly inspect?: string
  readonly keys?: readonly string[]
  readonly certificates?: readonly string[]
  readonly identities?: readonly { readonly issuer: string; readonly subject: string }[]
  readonly root?: string
}

/** Whose signature models with matching names need (spec conf.9). */
export interface TrustRuleConfig {
  /** For messages: `[[trust]] 1 (nvidia/*)`. */
  readonly label: string
  /** Whether the rule applies to a model with these names; only `*` matches a model without a known name. */
  readonly isFor: (names: readonly string[]) => boolean
  readonly mode: 'off' | 'warn' | 'require'
  /** What becomes of models that run code or are malformed; undefined: nothing. */
  readonly inspect: 'warn' | 'refuse' | undefined
  /** Absolute paths. */
  readonly keys: readonly string[]
  readonly certificates: readonly string[]
  readonly identities: NonNullable<TrustTable['identities']>
  readonly root: string | undefined
}

/** @throws ConfigError naming the rule and the problem */
export const trustRules = (tables: readonly TrustTable[] = []): readonly TrustRuleConfig[] =>
  tables.map((table, at) => ruleOf(table, at + 1))

function ruleOf(
  { names = [], inspect, mode = inspect && 'off', identities = [], ...files }: TrustTable,
  position: number
): TrustRuleConfig {
  const label = `[[trust]] ${position} (${names.join(', ')})`
  const wrong = (what: string): ConfigError => new ConfigError(`${label}: ${what}`)
  requireNames(names, wrong)
  if (mode !== 'off' && mode !== 'warn' && mode !== 'require') throw wrong('mode is "off", "warn" or "require"')
  if (inspect !== undefined && inspect !== 'warn' && inspect !== 'refuse') throw wrong('inspect is "warn" or "refuse"')
  const absolute = (key: 'keys' | 'certificates' | 'root', path: string): string => absolutePath(path, key, wrong)
  const keys = (files.keys ?? []).map((path) => absolute('keys', path))
  const certificates = (files.certificates ?? []).map((path) => absolute('certificates', path))
  const root = files.root === undefined ? undefined : absolute('root', files.root)
  if ((root === undefined) !== (identities.length === 0)) throw wrong('identities and root require each other')
  if (mode !== 'off' && keys.length + certificates.length + identities.length === 0)
    throw wrong('it names no signer: set keys, certificates or identities')
  const test = globsOf(names, (what) => wrong(`names: ${what}`))
  const isFor = (asked: readonly string[]): boolean => names.includes('*') || asked.some(test)
  return { label, isFor, mode, inspect, keys, certificates, identities, root }
}

function requireNames(names: readonly string[], wrong: (what: string) => ConfigError): void {
  if (names.length === 0) throw wrong('names is missing; write the models that the rule is for, e.g. ["nvidia/*"]')
  for (const name of names)
    if (name !== '*' && !/^[\w.*-]+\/[\w.*-]+$/.test(name))
      throw wrong(`names has ${JSON.stringify(name)}; write "ns/name", where "*" stands for any text, or "*"`)
}

/** Tests a name against patterns, ignoring case. @throws ConfigError that `wrong` makes, for patterns beyond their bounds */
export function globsOf(patterns: readonly string[], wrong: (what: string) => ConfigError): (name: string) => boolean {
  try {
    return globTest(patterns, true)
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    throw wrong(cause.message)
  }
}
