import { createHash, hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { DiskBlobStore } from '@svc/cas'
import { isLeftOut, normalisedName } from '@svc/classify'
import type { Clock } from '@svc/internal-clock'
import type { CompanionFile, Companions, Manifest, ManifestFile, OmittedFile } from '@svc/manifest'
import { digestHex, type Sha256Digest } from '@svc/ref'
import type * as Signature from '@svc/signature'
import type { TrustRuleConfig } from '../config/trust.ts'
import { ConfigError, DaemonError } from '../errors.ts'
import { someOf } from './companions.ts'
import { readSmallBlob } from './small-blob.ts'
import type { StoreState } from './state.ts'
import { upstreamConfigOf } from './upstream-config.ts'

/** The path of a signature in a model's folder. */
export const SIGNATURE = 'model.sig'
/** As `@svc/signature` reads at most. */
const MAX_SIGNATURE_BYTES = 8 << 20
const MAX_KEY_BYTES = 1 << 20

/** A rule whose keys have been read. */
export interface TrustRule extends Pick<TrustRuleConfig, 'label'> {
  readonly mode: 'warn' | 'require'
  readonly trust: Signature.Trust
}

/** What an import brings, before anything of it is visible. All blobs are in the store. */
export interface BroughtModel {
  /** Entries of a manifest, or of one to be written. */
  readonly entries: readonly Pick<ManifestFile, 'kind' | 'name' | 'digest' | 'size'>[]
  readonly companions: readonly Pick<CompanionFile, 'path' | 'size' | 'digest'>[]
  /** A `config.json` that is no companion. */
  readonly config?: Uint8Array | undefined
  /** Files that the source has and the import does not bring. */
  readonly omitted: readonly Pick<OmittedFile, 'path' | 'reason'>[]
}

export interface CheckContext extends Pick<StoreState, 'store' | 'clock'> {
  /** Called with progress while parts of files are read again, for signatures that list these. */
  readonly onReading?: (what: string) => void
}

type CheckedModel = readonly [Manifest, beside: Pick<Companions, 'files' | 'omitted'>, CheckContext]

/** What a valid signature says about single files. */
export interface SignedListing {
  /** All that was signed. */
  readonly paths: ReadonlySet<string>
  /** The signer knows of the file, or left it out. */
  names(path: string): boolean
  /** The signer signed these bytes, or left the file out. */
  covers(path: string, digest: Sha256Digest): boolean
}

/**
 * The rules `[[trust]]` (spec conf.9): whose signature models of some names need. Code that shows or serves part of a
 * model before its import is over asks {@link ruleFor} first.
 */
export class TrustRules {
  readonly #rules: readonly (Pick<TrustRuleConfig, 'isFor'> & { readonly rule: TrustRule | undefined })[]

  private constructor(rules: readonly (Pick<TrustRuleConfig, 'isFor'> & { readonly rule: TrustRule | undefined })[]) {
    this.#rules = rules
  }

  /** Reads keys, certificates and trust roots. @throws ConfigError naming the rule and the file */
  static async open(configs: readonly TrustRuleConfig[]): Promise<TrustRules> {
    const rules: { isFor: TrustRuleConfig['isFor']; rule: TrustRule | undefined }[] = []
    for (const config of configs) {
      const { isFor, mode, label } = config
      rules.push({ isFor, rule: mode === 'off' ? undefined : { label, mode, trust: await readTrust(config) } })
    }
    return new TrustRules(rules)
  }

  /** Whether a rule requires signatures. */
  get isStrict(): boolean {
    return this.#rules.some(({ rule }) => rule?.mode === 'require')
  }

  /**
   * The first rule for one of a model's names, here or at its source; undefined where there is none, or it is off.
   * @param names `ns/name`, without regard to case
   */
  ruleFor(...names: readonly (string | undefined)[]): TrustRule | undefined {
    const known = names.filter((name) => name !== undefined)
    return this.#rules.find(({ isFor }) => isFor(known))?.rule
  }

  /**
   * Checks what an import brings against its signature, by the digests that the store verified.
   * @returns warnings @throws DaemonError `E_NOT_IMPORTABLE` naming rule and file, where the rule requires a signature that covers them
   */
  async check(rule: TrustRule, model: BroughtModel, context: CheckContext): Promise<string[]> {
    return this.#saidOf(rule, await complaintOf(rule, model, context))
  }

  /** {@link check} of an artifact whose blobs are all here, with its companions. */
  async checkStored(rule: TrustRule, ...stored: CheckedModel): Promise<string[]> {
    return this.#saidOf(rule, await this.complaintOfStored(rule, ...stored))
  }

  /** What is wrong with it, for people. */
  async complaintOfStored(rule: TrustRule, ...[manifest, beside, context]: CheckedModel): Promise<string | undefined> {
    const text = await upstreamConfigOf(manifest, context.store)
    const config = text === undefined ? undefined : Buffer.from(text)
    const model = { entries: manifest.files, companions: beside.files, omitted: beside.omitted, config }
    return complaintOf(rule, model, context)
  }

  #saidOf(rule: TrustRule, complaint: string | undefined): string[] {
    if (complaint === undefined) return []
    if (rule.mode === 'require') throw this.refusal(rule, complaint)
    return [`${rule.label}: ${complaint}`]
  }

  /** The statement of a signature. @throws DaemonError `E_NOT_IMPORTABLE` naming the rule, for an invalid one */
  async signed(rule: TrustRule, bytes: Uint8Array, clock: Clock): Promise<SignedListing> {
    const { isBelow, SignatureError, verifySignature } = await import('@svc/signature')
    try {
      return listingOf(verifySignature(bytes, rule.trust, new Date(clock.now())).model, isBelow)
    } catch (cause) {
      if (!(cause instanceof SignatureError)) throw cause
      throw this.refusal(rule, `${SIGNATURE}: ${cause.message}`, cause)
    }
  }

  /** Whether companions have a signature that holds, whatever it covers. @throws DaemonError `E_NOT_IMPORTABLE` naming the rule */
  async requireSigned(
    rule: TrustRule,
    companions: BroughtModel['companions'],
    { store, clock }: Pick<CheckContext, 'store' | 'clock'>
  ): Promise<void> {
    const bytes = await signatureIn(companions, store)
    if (bytes === undefined) throw this.refusal(rule)
    await this.signed(rule, bytes, clock)
  }

  /** The refusal of a model. Default: it has no signature. */
  refusal({ label }: TrustRule, complaint = UNSIGNED, cause?: unknown): DaemonError {
    const what = `refused by the rule ${label} of the configuration: ${complaint}`
    return new DaemonError('E_NOT_IMPORTABLE', what, { cause })
  }
}

const UNSIGNED = `it is not signed: there is no ${SIGNATURE}`

async function readTrust({ label, keys, certificates, identities, root }: TrustRuleConfig): Promise<Signature.Trust> {
  const { requireReadable, SignatureError } = await import('@svc/signature')
  const read = async (path: string, as: (text: string) => Signature.Trust): Promise<string> => {
    try {
      const text = (await readFile(path)).subarray(0, MAX_KEY_BYTES).toString('utf8')
      requireReadable(as(text))
      return text
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException
      const why = cause instanceof SignatureError ? message : `it cannot be read (${code ?? message})`
      throw new ConfigError(`${label}: ${path}: ${why}`, { cause })
    }
  }
  return {
    keys: await Promise.all(keys.map((path) => read(path, (text) => ({ keys: [text] })))),
    certificates: await Promise.all(certificates.map((path) => read(path, (text) => ({ certificates: [text] })))),
    ...(root !== undefined && { identities, root: await read(root, (text) => ({ root: text })) })
  }
}

/** What is wrong with a model, for people; undefined where its signature covers all of it. */
async function complaintOf(rule: TrustRule, model: BroughtModel, context: CheckContext): Promise<string | undefined> {
  const { store, clock } = context
  const bytes = await signatureIn(model.companions, store)
  if (bytes === undefined) return UNSIGNED
  const { compareWithFiles, defectsOf, SignatureError, verifySignature } = await import('@svc/signature')
  try {
    const { model: signed } = verifySignature(bytes, rule.trust, new Date(clock.now()))
    const files = await filesOf(model, store)
    const found = await compareWithFiles(signed, files, {
      hashPart: partsOf(files, context),
      signaturePath: SIGNATURE,
      nameHere: normalisedName,
      isLeftOut: (path) => isLeftOut(path, model.omitted)
    })
    return (
      defectsOf(found)
        .map(([what, paths]) => `${what}: ${someOf(paths)}`)
        .join('; ') || undefined
    )
  } catch (error) {
    if (error instanceof SignatureError) return `${SIGNATURE}: ${error.message}`
    throw error
  }
}

async function signatureIn(
  companions: BroughtModel['companions'],
  store: DiskBlobStore
): Promise<Uint8Array | undefined> {
  const digest = companions.find(({ path }) => path === SIGNATURE)?.digest
  return digest && readSmallBlob(store, digest, MAX_SIGNATURE_BYTES)
}

interface BroughtFile extends Signature.ModelFile {
  /** Absent for a member of an archive. */
  readonly blob?: Sha256Digest
}

/** The files of a model's folder, as a view has them, with the members of archives. */
async function filesOf(
  { entries, companions, config }: BroughtModel,
  store: DiskBlobStore
): Promise<readonly BroughtFile[]> {
  const files = new Map<string, BroughtFile>()
  const add = (path: string, sizeBytes: number, sha256: string, blob?: Sha256Digest): void => {
    if (!files.has(path)) files.set(path, { path, sizeBytes, sha256, ...(blob && { blob }) })
  }
  const ownConfig = companions.find(({ path }) => path === CONFIG)
  if (ownConfig !== undefined) add(CONFIG, ownConfig.size, digestHex(ownConfig.digest), ownConfig.digest)
  else if (config !== undefined) add(CONFIG, config.length, hash('sha256', config))
  for (const { kind, name, digest, size } of entries) {
    if (kind === 'config') continue
    if (kind !== 'tokenizer' && kind !== 'adapter') add(name, size, digestHex(digest), digest)
    else {
      const { readTarMembers } = await import('@svc/view')
      const folder = name.slice(0, name.lastIndexOf('/') + 1)
      for await (const member of readTarMembers({ path: store.blobPath(digest), digest, sizeBytes: size }))
        add(folder + member.name, member.sizeBytes, await hashOf(member.bytes))
    }
  }
  for (const { path, size, digest } of companions) add(path, size, digestHex(digest), digest)
  return [...files.values()]
}

const CONFIG = 'config.json'

async function hashOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hasher = createHash('sha256')
  for await (const chunk of chunks) hasher.update(chunk)
  return hasher.digest('hex')
}

function partsOf(files: readonly BroughtFile[], { store, onReading }: CheckContext): Signature.HashPart {
  const blobs = new Map(files.map(({ path, blob }) => [path, blob]))
  return async (path, start, end) => {
    const blob = blobs.get(path)
    if (blob === undefined)
      throw new DaemonError('E_NOT_IMPORTABLE', `the signature lists parts of ${path}, which is kept in an archive`)
    onReading?.(`reading ${path} from ${start} to ${end} for its signature`)
    const reader = await store.open(blob)
    try {
      return await hashOf(reader.stream({ start, end }))
    } finally {
      await reader.close()
    }
  }
}

function listingOf(
  { resources, ignored }: Signature.SignedModel,
  isBelow: (typeof Signature)['isBelow']
): SignedListing {
  const signed = new Map(resources.map((resource) => [resource.path, resource]))
  const isIgnored = (path: string): boolean => path === SIGNATURE || isBelow(path, ignored)
  return {
    paths: new Set(signed.keys()),
    names: (path) => signed.has(path.normalize('NFC')) || isIgnored(path),
    covers(path, digest) {
      const { start = 0, sha256 } = signed.get(path.normalize('NFC')) ?? {}
      // a file in several parts is in the map with its last part, whose digest is not that of the whole
      return sha256 === undefined ? isIgnored(path) : start === 0 && sha256 === digestHex(digest)
    }
  }
}
