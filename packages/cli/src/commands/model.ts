import type { OpenCompanions, OpenFile, OpenResult } from '@svc/client'
import { formatShortRef, parseRef } from '@svc/ref'
import { componentOf } from '@svc/view'
import { usage } from '../errors.ts'
import { count, formatBytes, shortCount, shortDigest } from '../format.ts'
import { readManifestBlob } from '../models/documents.ts'
import { type ModelFacts, modelFacts, namedFiles } from '../models/model-facts.ts'
import { membersOf, repositoryIn } from '../models/models-here.ts'
import { asRepo, canonicalRef, fullName, shortRef } from '../models/reference.ts'
import type { Session } from '../session.ts'
import { inspectedLine, openedFiles } from './inspect.ts'
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
  facts.push(...factRows(await modelFacts(session.client, files)))
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
  await printInspected(session, result)
  printMissing(session, result, all)
}

const factRows = ({ family, parameters, contextTokens, template }: ModelFacts): string[][] => [
  ...(family === undefined ? [] : [['  architecture', family]]),
  ...(parameters === undefined ? [] : [['  parameters', shortCount(parameters)]]),
  ...(contextTokens === undefined ? [] : [['  context', count(contextTokens, 'token')]]),
  ...(template === undefined ? [] : [['  template', template]])
]

/** Of a file, with its role, or the component that it holds. */
function kindOf({ name = '', kind, role = componentOf({ name, kind }) }: OpenFile): string {
  return role === undefined ? (kind ?? '') : `${kind} (${role})`
}

async function printMalformed(session: Session, digest: string): Promise<void> {
  const here = membersOf(await session.client.models()).find(({ manifest }) => manifest === digest)
  if (here?.malformed !== undefined) session.print(`  NOT A MODEL: no runtime can load ${here.malformed.join(', ')}`)
}

async function printInspected(session: Session, result: OpenResult): Promise<void> {
  const line = await inspectedLine(openedFiles(result))
  if (line !== undefined) session.print(`  ${line}; see svc inspect ${shortRef(result.ref)}`)
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
