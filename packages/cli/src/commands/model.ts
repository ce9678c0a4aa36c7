import type { OpenCompanions, OpenFile, OpenResult } from '@svc/client'
import { formatShortRef, parseRef } from '@svc/ref'
import { componentOf } from '@svc/view'
import { usage } from '../errors.ts'
import { count, formatBytes, shortDigest } from '../format.ts'
import { jsonDocument, readManifestBlob } from '../models/documents.ts'
import { membersOf, repositoryIn } from '../models/models-here.ts'
import { asRepo, canonicalRef, fullName, shortRef } from '../models/reference.ts'
import type { Session } from '../session.ts'
import { showRepo } from './inventory.ts'

export async function resolve(session: Session, text: string): Promise<void> {
  const result = await session.client.resolve(await canonicalRef(session, text))
  if (session.json) return session.document(result)
  if (session.quiet) return session.print(result.manifestDigest)
  session.print(`ref       ${result.ref}`)
  if (result.quant !== undefined) session.print(`quant     ${result.quant}`)
  session.print(`manifest  ${result.manifestDigest}`)
  if (result.indexDigest !== undefined) session.print(`index     ${result.indexDigest}`)
}

/** `svc show REF`, `svc show ns/name` for the quants, or `svc show hf org/name`. */
export async function show(
  session: Session,
  typed: string,
  more: string | undefined,
  options: { readonly context?: string }
): Promise<void> {
  if (typed === 'hf' && more !== undefined) return (await import('./remote.ts')).showHf(session, more, options)
  if (more !== undefined)
    throw usage(`"${typed} ${more}" names no model`, 'svc show hf ORG/NAME shows what the hub has')
  const text = await fullName(session, typed)
  const repo = asRepo(text)
  if (repo !== undefined && (session.json || !(await hasOneQuant(session, repo)))) return showRepo(session, repo)
  const result = await session.client.open(await canonicalRef(session, text))
  const { annotations = {}, files: all = [] } = await readManifestBlob(session.client, result.manifestDigest)
  if (session.json) return session.document({ ...result, annotations })

  // the selected quant, in case only a prefix was typed
  const ref = parseRef(result.ref)
  session.print(formatShortRef(ref.quant === undefined ? ref : { ...ref, quant: result.quant ?? ref.quant }))
  const files = namedFiles(result)
  const sizeBytes = files.reduce((sum, file) => sum + file.size, 0)
  const facts: string[][] = [['  manifest', result.manifestDigest]]
  for (const [key, label] of LABELS) if (annotations[key] !== undefined) facts.push([`  ${label}`, annotations[key]])
  facts.push(...(await modelFacts(session, result)))
  facts.push(['  files', `${files.length}, ${formatBytes(sizeBytes)}`])
  session.table(facts)
  if (!session.quiet) {
    const rows = files.map((file) => [
      `    ${file.name}`,
      kindOf(file),
      formatBytes(file.size),
      shortDigest(file.digest)
    ])
    session.table(rows)
    if (result.companions !== undefined) printCompanions(session, result.companions)
    else if (annotations['svc.hf.repo'] !== undefined)
      session.print(`  companions are not here; fetch them with: svc companions ${shortRef(result.ref)}`)
  }
  for (const warning of result.companions?.warnings ?? []) session.note(warning)
  await printMalformed(session, result.manifestDigest)
  printMissing(session, result, all)
}

/** What the model config and the files say of the model: architecture, context, chat template. */
async function modelFacts({ client }: Session, result: OpenResult): Promise<string[][]> {
  const files = namedFiles(result)
  const config = files.find(({ kind }) => kind === 'config')
  const read = config && (await jsonDocument(client, config.digest).catch(() => undefined))
  const { family, contextLength } = (read ?? {}) as { readonly family?: string; readonly contextLength?: number }
  const template = files.find(({ kind }) => kind === 'chat-template')
  return [
    ...(family === undefined ? [] : [['  architecture', family]]),
    ...(contextLength === undefined ? [] : [['  context', count(contextLength, 'token')]]),
    ...(template === undefined ? [] : [['  template', template.name!]])
  ]
}

/** Of a file, with its role, or the component that it holds. */
function kindOf({ name = '', kind, role = componentOf({ name, kind }) }: OpenFile): string {
  return role === undefined ? (kind ?? '') : `${kind} (${role})`
}

async function printMalformed(session: Session, digest: string): Promise<void> {
  const here = membersOf(await session.client.models()).find(({ manifest }) => manifest === digest)
  if (here?.malformed !== undefined) session.print(`  NOT A MODEL: no runtime can load ${here.malformed.join(', ')}`)
}

/** @param files of the manifest, with those that are not here */
function printMissing(
  session: Session,
  { ref, missing = [] }: OpenResult,
  files: readonly Pick<OpenFile, 'name' | 'digest' | 'size'>[]
): void {
  if (missing.length === 0) return
  const lost = files.filter(({ digest }) => missing.includes(digest))
  const bytes = lost.reduce((sum, { size }) => sum + size, 0)
  session.print(
    `  missing ${count(missing.length, 'file')}, ${formatBytes(bytes)}; fetch with: svc pull ${shortRef(ref)}`
  )
  for (const { name, digest } of lost) session.print(`    ${name ?? digest}`)
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  large: 'larger than 1 MiB, and not in any model',
  many: 'one of too many small files',
  hidden: 'hidden',
  secret: 'the name of a secret',
  unreadable: 'could not be read',
  name: 'its name'
}

/** The companions of the model, and what was left out. */
function printCompanions(session: Session, { files, omitted }: OpenCompanions): void {
  if (files.length + omitted.length === 0) return
  const sizeBytes = files.reduce((sum, { size }) => sum + size, 0)
  session.print(`  companions ${count(files.length, 'file')}, ${formatBytes(sizeBytes)}`)
  const rows = files.map(({ path, size, digest, own }) => [
    `    ${path}`,
    own === true ? 'not shared' : '',
    formatBytes(size),
    shortDigest(digest)
  ])
  const left = omitted.filter(({ reason }) => reason !== 'artifact')
  session.table(rows)
  if (left.length === 0) return
  session.print(`  left out   ${count(left.length, 'file')}`)
  const why = left.map(({ path, size, reason }) => [`    ${path}`, formatBytes(size), LEFT_OUT[reason] ?? reason])
  session.table(why)
}

async function hasOneQuant({ client }: Session, repo: string): Promise<boolean> {
  return repositoryIn(await client.models(), repo)?.quants.length === 1
}

const LABELS = [
  ['svc.hf.repo', 'hub repo'],
  ['svc.hf.revision', 'revision'],
  ['svc.license', 'license']
] as const

/** The manifest's own files; the blobs of index and manifest are listed, too, but have no name. */
export const namedFiles = (result: OpenResult): OpenFile[] => result.files.filter((file) => file.name !== undefined)

/** True for files that are loaded: weights, and files that were taken as they are. */
export const isWeights = ({ kind }: { readonly kind?: string }): boolean =>
  kind === 'weights.gguf' || kind === 'weights.safetensors' || kind === 'opaque'
