import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { DiskBlobStore } from '@svc/cas'
import { leftOutTest, namesHere, type OwnersChoice } from '@svc/classify'
import type { Clock } from '@svc/internal-clock'
import {
  COMPANION_BOUNDS,
  type CompanionFile,
  type Companions,
  type Manifest,
  type ManifestFile,
  type OmittedFile
} from '@svc/manifest'
import { digestHex, type Sha256Digest } from '@svc/ref'
import type * as Signature from '@svc/signature'
import { someOf } from './companions.ts'
import { LibraryError } from './library-error.ts'
import { SignatureReader } from './signature-calls.ts'
import { readSmallBlob } from './small-blob.ts'
import type { StoreState } from './state.ts'
import { upstreamConfigOf } from './upstream-config.ts'

/** The path of a signature in a model's folder. */
export const SIGNATURE = 'model.sig'
/** It is a companion. */
export const MAX_SIGNATURE_BYTES = COMPANION_BOUNDS.fileBytes
const MAX_KEY_BYTES = 1 << 20

/** Whose signature models with matching names need (spec conf.9), before its files are read. */
export interface TrustRuleSource {
  /** For messages: `[[trust]] 1 (nvidia/*)`. */
  readonly label: string
  /** Whether the rule applies to a model with these names, `ns/name` in any case; none: a model without a known name. */
  readonly isFor: (names: readonly string[]) => boolean
  readonly mode: 'off' | 'warn' | 'require'
  /** What becomes of models that run code or are malformed; absent: nothing. */
  readonly inspect?: 'warn' | 'refuse' | undefined
  /** Absolute paths of public keys, PEM. */
  readonly keys?: readonly string[] | undefined
  /** Absolute paths of certificates, PEM. */
  readonly certificates?: readonly string[] | undefined
  readonly identities?: readonly { readonly issuer: string; readonly subject: string }[] | undefined
  /** Absolute path of the trust root for identities. */
  readonly root?: string | undefined
}

/** What the rules for a model require, with their keys. */
export interface TrustRule extends Pick<TrustRuleSource, 'label'> {
  readonly mode: 'warn' | 'require'
  /** Whom each of the rules trusts: the signature has to hold for all. */
  readonly trusts: readonly Signature.Trust[]
}

/** The names of a model, as `ns/name`, without regard to case. */
export interface TrustNames {
  /** By which it is known or asked for here. */
  readonly typed: readonly string[]
  /** That its source, or a document, gives it: these only add requirements. */
  readonly claimed: readonly (string | undefined)[]
}

/** What an import brings, before anything of it is visible. All blobs are in the store. */
export interface BroughtModel {
  /** Entries of a manifest, or of one to be written. */
  readonly entries: readonly Pick<ManifestFile, 'kind' | 'name' | 'digest' | 'size'>[]
  readonly annotations: Manifest['annotations']
  readonly companions: readonly Pick<CompanionFile, 'path' | 'size' | 'digest'>[]
  /** The text of the upstream `config.json`, which may be a companion as well. */
  readonly config?: string | undefined
  /** Files that the source says it has beside these. */
  readonly omitted: readonly Pick<OmittedFile, 'path'>[]
  /** What the owner chose of it, if not everything. */
  readonly choice?: OwnersChoice | undefined
  /** It is one artifact, and not all that an import brings. */
  readonly isArtifact?: boolean
}

export interface CheckContext extends Pick<StoreState, 'clock'> {
  readonly store: Pick<DiskBlobStore, 'stat' | 'open' | 'blobPath'>
  /** Somebody else caused the check: it does not delay those of the owner's imports. */
  readonly forOthers?: boolean
  /** Called with progress while parts of files are read again, for signatures that list these. */
  readonly onReading?: (what: string) => void
}

type CheckedModel = readonly [
  Manifest,
  beside: Pick<Companions, 'files' | 'omitted'> & { readonly choice?: OwnersChoice | undefined },
  CheckContext
]

/** What a valid signature says about single files. */
export interface SignedListing {
  /** All that was signed. */
  readonly paths: ReadonlySet<string>
  /** The signer knows of the file, or left it out. */
  names(path: string): boolean
  /** The signer signed these bytes, or left the file out. */
  covers(path: string, digest: Sha256Digest): boolean
}

/** What becomes of models that run code or are malformed (spec conf.9). */
export interface InspectionRule {
  readonly label: string
  readonly mode: 'warn' | 'refuse'
}

type OpenRule = Pick<TrustRuleSource, 'isFor' | 'label' | 'inspect'> & { readonly rule: TrustRule | undefined }

/** Each name of a model by itself; none, too, if nobody typed one. */
function askedOf({ typed, claimed }: TrustNames): readonly (readonly string[])[] {
  const names = [...typed, ...claimed.filter((name) => name !== undefined)].map((name) => [name])
  return typed.length > 0 ? names : [[], ...names]
}

/**
 * The rules `[[trust]]` (spec conf.9): whose signature models of some names need. Code that shows or serves part of a
 * model before its import is over asks {@link ruleFor} first.
 */
export class TrustRules {
  readonly #rules: readonly OpenRule[]
  readonly #readers = {
    owner: new SignatureReader('svc-signatures'),
    others: new SignatureReader('svc-signatures-2')
  }

  private constructor(rules: readonly OpenRule[]) {
    this.#rules = rules
  }

  /** Reads keys, certificates and trust roots. @throws LibraryError `E_TRUST` naming the rule and the file */
  static async open(configs: readonly TrustRuleSource[]): Promise<TrustRules> {
    const rules: OpenRule[] = []
    for (const config of configs) {
      const { isFor, mode, label, inspect } = config
      // verdicts are remembered by it
      if (rules.some((rule) => rule.label === label))
        throw new LibraryError('E_TRUST', `two rules have the label ${JSON.stringify(label)}`)
      rules.push({
        isFor,
        label,
        inspect,
        rule: mode === 'off' ? undefined : { label, mode, trusts: [await readTrust(config)] }
      })
    }
    return new TrustRules(rules)
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#readers).map((reader) => reader.close()))
  }

  /** Whether a rule requires signatures. */
  get isStrict(): boolean {
    return this.#rules.some(({ rule }) => rule?.mode === 'require')
  }

  /**
   * Each name brings the first rule that matches it, and the strictest of these apply; undefined where none does, or all
   * are off. Without a typed name, a rule for all models applies as if there were no name at all.
   */
  ruleFor(names: TrustNames): TrustRule | undefined {
    const found = new Set(askedOf(names).map((name) => this.#rules.find(({ isFor }) => isFor(name))?.rule))
    const brought = [...found].filter((rule) => rule !== undefined)
    const mode = brought.some((rule) => rule.mode === 'require') ? 'require' : 'warn'
    const strictest = brought.filter((rule) => rule.mode === mode)
    if (strictest.length < 2) return strictest[0]
    const label = strictest.map((rule) => rule.label).join(' and ')
    return { label, mode, trusts: strictest.flatMap(({ trusts }) => trusts) }
  }

  /** Of the rules that {@link ruleFor} looks at, the strictest that says what becomes of models that run code or are malformed. */
  inspectionFor(names: TrustNames): InspectionRule | undefined {
    const found = askedOf(names).flatMap(
      (name) => this.#rules.find(({ isFor, inspect }) => inspect !== undefined && isFor(name)) ?? []
    )
    const strictest = found.find(({ inspect }) => inspect === 'refuse') ?? found[0]
    return strictest?.inspect && { label: strictest.label, mode: strictest.inspect }
  }

  /**
   * Checks what an import brings against its signature, by the digests that the store verified.
   * @returns warnings @throws LibraryError `E_NOT_IMPORTABLE` naming rule and file, where the rule requires a signature that covers them
   */
  async check(rule: TrustRule, model: BroughtModel, context: CheckContext): Promise<string[]> {
    return this.#saidOf(rule, await this.#complaintOf(rule, model, context))
  }

  /** {@link check} of an artifact whose blobs are all here, with its companions. */
  async checkStored(rule: TrustRule, ...stored: CheckedModel): Promise<string[]> {
    return this.#saidOf(rule, await this.complaintOfStored(rule, ...stored))
  }

  /** What is wrong with it, for people. */
  async complaintOfStored(rule: TrustRule, ...[manifest, beside, context]: CheckedModel): Promise<string | undefined> {
    const config = await upstreamConfigOf(manifest, context.store)
    const { files: entries, annotations } = manifest
    const { files: companions, omitted, choice } = beside
    const model = { entries, annotations, companions, omitted, config, choice, isArtifact: true }
    return this.#complaintOf(rule, model, context)
  }

  #saidOf(rule: TrustRule, complaint: string | undefined): string[] {
    if (complaint === undefined) return []
    if (rule.mode === 'require') throw this.refusal(rule, complaint)
    return [`${rule.label}: ${complaint}`]
  }

  /**
   * The statement of a signature that a stranger asked for. @throws LibraryError `E_NOT_IMPORTABLE` naming the rule, for an
   * invalid one
   */
  async signed(rule: TrustRule, bytes: Uint8Array, clock: Clock): Promise<SignedListing> {
    const { isBelow } = await import('@svc/signature')
    const said = await this.#verified(rule, bytes, { clock, forOthers: true })
    if ('refused' in said) throw this.refusal(rule, said.refused)
    return listingOf(said.model, isBelow)
  }

  /** Whether companions have a signature that holds, whatever it covers. @throws LibraryError `E_NOT_IMPORTABLE` naming the rule */
  async requireSigned(
    rule: TrustRule,
    companions: BroughtModel['companions'],
    context: Pick<CheckContext, 'store' | 'clock'>
  ): Promise<void> {
    const bytes = await signatureIn(companions, context.store)
    if (bytes === undefined) throw this.refusal(rule)
    const said = await this.#verified(rule, bytes, context)
    if ('refused' in said) throw this.refusal(rule, said.refused)
  }

  /** The refusal of a model. Default: it has no signature. */
  refusal({ label }: TrustRule, complaint = UNSIGNED): LibraryError {
    return new LibraryError('E_NOT_IMPORTABLE', `refused by the rule ${label}: ${complaint}`)
  }

  async #verified({ trusts }: TrustRule, bytes: Uint8Array, context: Pick<CheckContext, 'clock' | 'forOthers'>) {
    const reader = context.forOthers === true ? this.#readers.others : this.#readers.owner
    const said = await reader.verify({ bytes, trusts, nowMs: context.clock.now() })
    return 'refused' in said ? { refused: `${SIGNATURE}: ${said.refused}` } : said
  }

  /** What is wrong with a model, for people; undefined where its signature covers all of it. */
  async #complaintOf(rule: TrustRule, model: BroughtModel, context: CheckContext): Promise<string | undefined> {
    const { store } = context
    const bytes = await signatureIn(model.companions, store)
    if (bytes === undefined) return UNSIGNED
    const said = await this.#verified(rule, bytes, context)
    if ('refused' in said) return said.refused
    const { compareWithFiles, defectsOf } = await import('@svc/signature')
    const files = await filesOf(model, store)
    const here = files.map(({ path }) => path)
    const signed = said.model.resources.map(({ path }) => path)
    const found = await compareWithFiles(said.model, files, {
      hashPart: partsOf(files, context),
      signaturePath: SIGNATURE,
      nameHere: namesHere(signed, here),
      isLeftOut: leftOutTest({
        signed,
        here,
        omitted: model.omitted,
        choice: model.choice,
        isOfArtifact: model.isArtifact === true
      })
    })
    const defects = defectsOf(found).map(([what, paths]) => `${what}: ${someOf(paths)}`)
    return defects.join('; ') || undefined
  }
}

const UNSIGNED = `it is not signed: there is no ${SIGNATURE}`

async function readTrust({
  label,
  keys = [],
  certificates = [],
  identities = [],
  root
}: TrustRuleSource): Promise<Signature.Trust> {
  const { requireReadable, SignatureError } = await import('@svc/signature')
  const read = async (path: string, as: (text: string) => Signature.Trust): Promise<string> => {
    try {
      const text = (await readFile(path)).subarray(0, MAX_KEY_BYTES).toString('utf8')
      requireReadable(as(text))
      return text
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException
      const why = cause instanceof SignatureError ? message : `it cannot be read (${code ?? message})`
      throw new LibraryError('E_TRUST', `${label}: ${path}: ${why}`, { cause })
    }
  }
  return {
    keys: await Promise.all(keys.map((path) => read(path, (text) => ({ keys: [text] })))),
    certificates: await Promise.all(certificates.map((path) => read(path, (text) => ({ certificates: [text] })))),
    ...(root !== undefined && { identities, root: await read(root, (text) => ({ root: text })) })
  }
}

async function signatureIn(
  companions: BroughtModel['companions'],
  store: CheckContext['store']
): Promise<Uint8Array | undefined> {
  const digest = companions.find(({ path }) => path === SIGNATURE)?.digest
  return digest && readSmallBlob(store, digest, MAX_SIGNATURE_BYTES)
}

interface BroughtFile extends Signature.ModelFile {
  /** Absent for a member of an archive. */
  readonly blob?: Sha256Digest
}

/** The files of a model's folder, by the one list of them. @throws LibraryError `E_NOT_IMPORTABLE` where no folder can hold them */
async function filesOf(
  { entries, annotations, companions, config }: BroughtModel,
  store: CheckContext['store']
): Promise<readonly BroughtFile[]> {
  const { listModel, ViewError } = await import('@svc/view')
  const source = { manifest: { files: entries, annotations }, companions, upstreamConfig: config }
  try {
    const files = await listModel(source, (digest) => store.blobPath(digest))
    return files.map(({ name: path, sizeBytes, digest, content }) => ({
      path,
      sizeBytes,
      sha256: digestHex(digest),
      ...(content.in === 'blob' && { blob: digest })
    }))
  } catch (cause) {
    if (!(cause instanceof ViewError) || cause.code !== 'E_BAD_NAME') throw cause
    throw new LibraryError('E_NOT_IMPORTABLE', cause.message, { cause })
  }
}

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
      throw new LibraryError('E_NOT_IMPORTABLE', `the signature lists parts of ${path}, which is kept in an archive`)
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
  const left = new Set(ignored)
  const isIgnored = (path: string): boolean => path === SIGNATURE || isBelow(path, left)
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
