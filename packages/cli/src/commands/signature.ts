import { createHash } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { leftOutTest, namesHere } from '@svc/classify'
import type { View } from '@svc/client'
import { errnoOf } from '@svc/internal-errors'
import { digestHex } from '@svc/ref'
import {
  type Comparison,
  compareWithFiles,
  DEFAULT_IGNORED,
  defectsOf,
  isBelow,
  type ModelFile,
  SignatureError,
  type Signer,
  signModel,
  type Trust,
  verifySignature
} from '@svc/signature'
import { CliError, usage } from '../errors.ts'
import { count } from '../format.ts'
import { digestOfFile, withDigests } from '../models/file-digest.ts'
import { canonicalRef, shortRef } from '../models/reference.ts'
import { madeView } from '../models/runtime-view.ts'
import type { Session } from '../session.ts'

/** Where a signature lies in a model's folder, unless it is named. */
const SIGNATURE = 'model.sig'
const MAX_NAMED = 20

export interface SignatureVerifyOptions {
  readonly key?: readonly string[]
  readonly certificate?: readonly string[]
  readonly root?: string
  readonly issuer?: string
  readonly subject?: string
  readonly signature?: string
  readonly allowUncovered?: boolean
}

/**
 * `svc verify-signature REF`: whether the signature of a model holds, and for which of its files. Uses the digests that
 * the store verified at the import: reads weights again only for signatures of parts of files.
 */
export async function verifyModel(session: Session, ref: string, options: SignatureVerifyOptions): Promise<void> {
  const trust = await trustOf(options)
  const view = await madeView(session, ref)
  const [bytes, signaturePath] = await signatureIn(view, options.signature)
  const { signer, model } = orRefused(view.ref, () => verifySignature(bytes, trust, new Date(session.clock.now())))
  const files = await filesOf(view.files)
  const paths = new Map(view.files.map(({ name, path }) => [name, path]))
  const hashPart = async (name: string, start: number, end: number): Promise<string> => {
    session.note(`reading ${name} from ${start} to ${end}`)
    return start === end ? EMPTY : digestHex(await digestOfFile(paths.get(name)!, { start, end: end - 1 }))
  }
  const { companions } = await session.client.open(view.ref)
  const [signed, here] = [model.resources.map(({ path }) => path), files.map(({ path }) => path)]
  const found = await compareWithFiles(model, files, {
    hashPart,
    ...(signaturePath !== undefined && { signaturePath }),
    nameHere: namesHere(signed, here),
    isLeftOut: leftOutTest({
      signed,
      here,
      omitted: companions?.omitted ?? [],
      choice: companions?.choice,
      isOfArtifact: true
    })
  })
  const defects = defectsOf(options.allowUncovered === true ? { ...found, uncovered: [] } : found)
  // with its date, since the user has to keep it up to date
  const root =
    signer.kind === 'identity'
      ? `${options.root} of ${(await stat(options.root!)).mtime.toISOString().slice(0, 10)}`
      : undefined
  if (session.json) session.document({ ref: view.ref, signer, root, ...found, valid: defects.length === 0 })
  else for (const line of linesOf(shortRef(view.ref), signer, root, found)) session.print(line)
  if (defects.length > 0) {
    const what = defects.map(([what, paths]) => `${what}: ${named(paths)}`).join('; ')
    throw new CliError('verification', `${shortRef(view.ref)} is not what was signed: ${what}`, {
      code: 'E_VERIFY_FAILED'
    })
  }
}

const EMPTY = createHash('sha256').digest('hex')

async function trustOf({ key, certificate, root, issuer, subject }: SignatureVerifyOptions): Promise<Trust> {
  if (key === undefined && certificate === undefined && root === undefined)
    throw usage(
      'name whom you trust to sign',
      '--key FILE, --certificate FILE, or --root trusted_root.json with --issuer and --subject'
    )
  if ((root !== undefined || issuer !== undefined || subject !== undefined) && !(root && issuer && subject))
    throw usage('a login is verified with all three of --root, --issuer and --subject')
  return {
    ...(key !== undefined && { keys: await Promise.all(key.map(textOf)) }),
    ...(certificate !== undefined && { certificates: await Promise.all(certificate.map(textOf)) }),
    ...(root !== undefined && { root: await textOf(root), identities: [{ issuer: issuer!, subject: subject! }] })
  }
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new CliError('usage', `${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

/** The signature's bytes, and its name in the model's folder if it lies there. */
async function signatureIn(view: View, named: string | undefined): Promise<readonly [Buffer, string | undefined]> {
  if (named !== undefined) return [Buffer.from(await textOf(named)), undefined]
  const file = view.files.find(({ name }) => name === SIGNATURE)
  if (file !== undefined) return [await readFile(file.path), SIGNATURE]
  throw new CliError('notFound', `${shortRef(view.ref)} has no ${SIGNATURE}: it is not signed`, {
    code: 'E_NOT_FOUND',
    hint: 'a signature that lies elsewhere is named with --signature FILE'
  })
}

function orRefused<T>(ref: string, verify: () => T): T {
  try {
    return verify()
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error
    if (error.code === 'E_INVALID') throw new CliError('usage', error.message, { cause: error })
    throw new CliError('verification', `the signature of ${shortRef(ref)} is refused: ${error.message}`, {
      code: 'E_VERIFY_FAILED',
      cause: error
    })
  }
}

const filesOf = async (files: View['files']): Promise<ModelFile[]> =>
  (await withDigests(files)).map(({ name, size, digest }) => ({
    path: name,
    sizeBytes: size,
    sha256: digestHex(digest)
  }))

const named = (paths: readonly string[]): string =>
  [...paths.slice(0, MAX_NAMED), ...(paths.length > MAX_NAMED ? [`and ${paths.length - MAX_NAMED} more`] : [])].join(
    ', '
  )

function linesOf(ref: string, signer: Signer, root: string | undefined, found: Comparison): string[] {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['trust root', root === undefined ? [] : [root]],
    ['covered', [count(found.covered.length, 'file')]],
    ['ignored', found.ignored],
    ['not chosen', found.notChosen],
    ['not signed', found.uncovered],
    ['missing', found.missing],
    ['changed', found.changed]
  ]
  const told = rows.filter(([, what]) => what.length > 0)
  return [
    `${ref}: signed by ${signerText(signer)}`,
    ...told.map(([name, what]) => `  ${name.padEnd(11)} ${named(what)}`)
  ]
}

function signerText(signer: Signer): string {
  if (signer.kind === 'key') return `the key ${signer.fingerprint}`
  if (signer.kind === 'certificate') return `the certificate of ${signer.subject}`
  return `${signer.subject} (${signer.issuer})`
}

export interface SignOptions {
  readonly key: string
  readonly certificate?: string
  readonly output: string
}

/** `svc sign REF`: signs the digests of all files of a model's folder. */
export async function sign(session: Session, ref: string, options: SignOptions): Promise<void> {
  const [key, certificates] = [await textOf(options.key), options.certificate && (await textOf(options.certificate))]
  const view = await madeView(session, await canonicalRef(session, ref))
  const ignored = [...DEFAULT_IGNORED, SIGNATURE]
  // files that never leave are not named either
  const own = view.files.filter((file) => file.own === true)
  const given = view.files.filter((file) => file.own !== true && !isBelow(file.name, new Set(ignored)))
  const files = await filesOf(given)
  const name = shortRef(view.ref)
  const bytes = orRefused(view.ref, () =>
    signModel({ name, files, ignored }, { key, ...(certificates && { certificates }) })
  )
  try {
    await writeFile(options.output, bytes, { flag: 'wx' })
  } catch (cause) {
    if (errnoOf(cause) === 'EEXIST') throw usage(`${options.output} exists already`, 'name another file with --output')
    throw new CliError('failed', `${options.output} cannot be written: ${(cause as Error).message}`, { cause })
  }
  if (session.json) return session.document({ ref: view.ref, signature: options.output, files: files.length })
  session.print(`${options.output}: signs ${count(files.length, 'file')} of ${name}`)
  if (own.length > 0)
    session.note(`not signed, since it never leaves with the model: ${named(own.map((file) => file.name))}`)
  session.note(`to pass it on with the model, lay it beside the files as ${SIGNATURE}`)
}
