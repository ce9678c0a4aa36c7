import { createHash } from 'node:crypto'
import { malformed } from './errors.ts'
import { type JsonRecord, parsedJson, record } from './json.ts'

/** OpenSSF model signing: the predicate of release 1.0, and that of 0.2, which lists files as subjects. */
const PREDICATE = 'https://model_signing/signature/v1.0'
export const PREDICATE_0_2 = 'https://model_signing/Digests/v0.1'
const STATEMENT = 'https://in-toto.io/Statement/v1'

const MAX_RESOURCES = 100_000
const MAX_IGNORED = 1_000
const MAX_NAME_CHARACTERS = 4_096
/** What signers leave out unless they are told otherwise; before release 1.1 they do not say it. */
export const DEFAULT_IGNORED: readonly string[] = ['.git', '.gitattributes', '.github', '.gitignore']

/** A file, or with `start` and `end` a part of one, in bytes; `end` is exclusive. */
export interface SignedResource {
  /** Relative to the model's folder, with slashes. */
  readonly path: string
  /** SHA-256, in hexadecimal digits. */
  readonly sha256: string
  readonly start?: number
  readonly end?: number
}

/** What a signer says of a model. */
export interface SignedModel {
  /** The folder's name at the signer's; undefined if the statement has none. */
  readonly name: string | undefined
  readonly resources: readonly SignedResource[]
  /** Paths that the signer left out, each with all below it. */
  readonly ignored: readonly string[]
}

/** @throws SignatureError `malformed` */
export function parseStatement(payload: Uint8Array): SignedModel {
  const { _type, predicateType, subject, predicate } = record(
    parsedJson(payload, 'the signed statement'),
    'the statement'
  )
  if (_type !== STATEMENT) throw malformed(`its statement is of type ${quoted(_type)}`)
  const subjects = list(subject, '"subject"')
  if (predicateType === PREDICATE_0_2) {
    const resources = subjects.map((each) => ofSubject(record(each, 'a subject')))
    return { name: undefined, resources: checked(resources), ignored: DEFAULT_IGNORED }
  }
  if (predicateType !== PREDICATE) throw malformed(`its predicate is of type ${quoted(predicateType)}`)
  if (subjects.length !== 1) throw malformed(`it names ${subjects.length} models instead of one`)
  const { name, digest } = record(subjects[0], 'the subject')
  const { serialization, resources: listed } = record(predicate, '"predicate"')
  const {
    method,
    hash_type: hashType,
    ignore_paths: ignored = DEFAULT_IGNORED
  } = record(serialization, '"serialization"')
  if (method !== 'files' && method !== 'shards') throw malformed(`it lists files by the method ${quoted(method)}`)
  if (hashType !== 'sha256') throw malformed(`its digests are made with ${quoted(hashType)}`)
  const model = text(name, "the model's name")
  const resources = list(listed, '"resources"').map((each) => ofResource(record(each, 'a resource'), method, model))
  const whole = createHash('sha256')
  for (const { sha256 } of resources) whole.update(sha256, 'hex')
  if (whole.digest('hex') !== hex(record(digest, "the subject's digest").sha256))
    throw malformed('the digest of the model does not match the files that it lists')
  const ignoredPaths = list(ignored, '"ignore_paths"', MAX_IGNORED).map((path) =>
    ignoredPath(text(path, 'an ignored path'))
  )
  return { name: model, resources: checked(resources), ignored: ignoredPaths }
}

function ofSubject({ name, digest }: JsonRecord): SignedResource {
  return { path: relative(text(name, 'a name')), sha256: hex(record(digest, 'a digest').sha256) }
}

function ofResource(
  { name, algorithm, digest }: JsonRecord,
  method: 'files' | 'shards',
  model: string
): SignedResource {
  // signers repeat the hash for each resource, some with how it was applied.
  if (typeof algorithm !== 'string' || !/sha256/.test(algorithm))
    throw malformed(`a digest is made with ${quoted(algorithm)}`)
  const sha256 = hex(digest)
  const given = text(name, 'a name')
  // a model that is a single file lists it as ".".
  if (method === 'files') return { path: relative(given === '.' ? model : given), sha256 }
  const [, path, from, to] = /^(.+):(\d{1,15}):(\d{1,15})$/s.exec(given) ?? []
  const [start, end] = [Number(from), Number(to)]
  if (path === undefined || start > end) throw malformed(`${quoted(given)} does not name a part of a file`)
  return { path: relative(path === '.' ? model : path), sha256, start, end }
}

/** A name that is listed twice could let one file stand for another. */
function checked(resources: readonly SignedResource[]): readonly SignedResource[] {
  if (resources.length === 0) throw malformed('it lists no files')
  for (const [path, of] of Map.groupBy(resources, (resource) => resource.path)) {
    const ordered = of.toSorted((a, b) => (a.start ?? 0) - (b.start ?? 0))
    if (ordered.some(({ start, end }) => start === undefined || end === undefined) && of.length > 1)
      throw malformed(`it lists ${quoted(path)} twice`)
    let end = 0
    for (const part of ordered) {
      if (part.start !== undefined && part.start !== end)
        throw malformed(`parts of ${quoted(path)} overlap or are missing`)
      end = part.end ?? end
    }
  }
  return resources
}

function relative(given: string): string {
  // NFC, like the names in a store
  const path = given.normalize('NFC')
  const segments = path.split('/')
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || /[\0\\]/.test(path))
    throw malformed(`${quoted(path)} is not a path below the model's folder`)
  return path
}

/** A signature that ignores the whole model says nothing. */
function ignoredPath(path: string): string {
  const plain = path.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '')
  if (plain === '' || plain === '.') throw malformed('it ignores the whole model')
  return plain
}

function list(value: unknown, what: string, most = MAX_RESOURCES): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(`${what} is not a list`)
  if (value.length > most) throw malformed(`${what} has more than ${most} entries`)
  return value
}

function text(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME_CHARACTERS)
    throw malformed(`${what} is not a text of 1 to ${MAX_NAME_CHARACTERS} characters`)
  return value
}

function hex(value: unknown): string {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/i.test(value)) throw malformed('a digest is not a SHA-256')
  return value.toLowerCase()
}

/** For messages: a stranger's text, cut short and without anything that a terminal would act on. */
const quoted = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)

/** The statement about hashed files, as signers write it: sorted by path. */
export function statementOf(
  name: string,
  files: readonly { readonly path: string; readonly sha256: string }[],
  ignored: readonly string[]
): Uint8Array {
  const resources = files
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path, sha256 }) => ({ name: path, algorithm: 'sha256', digest: sha256 }))
  const whole = createHash('sha256')
  for (const { digest } of resources) whole.update(digest, 'hex')
  const statement = {
    _type: STATEMENT,
    subject: [{ name, digest: { sha256: whole.digest('hex') } }],
    predicateType: PREDICATE,
    predicate: {
      serialization: { method: 'files', hash_type: 'sha256', allow_symlinks: false, ignore_paths: ignored },
      resources
    }
  }
  return new TextEncoder().encode(JSON.stringify(statement))
}
