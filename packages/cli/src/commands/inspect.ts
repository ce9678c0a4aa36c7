import { type Dirent, existsSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Inspection, inspectFiles, type ListedFile, type ModelFinding, type ReadAt } from '@svc/classify'
import type { OpenResult } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import { count } from '../format.ts'
import { tryParseHubSource } from '../hub/hub-source.ts'
import { madeView } from '../models/runtime-view.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'
import { awaitDaemon } from '../starting.ts'

export interface InspectOptions {
  readonly strict?: boolean
}

/** `svc inspect REF | PATH | hf org/name [--strict]`: what would run code, and what is malformed. */
export async function inspect(
  session: Session,
  target: string,
  repo: string | undefined,
  options: InspectOptions
): Promise<void> {
  if (repo !== undefined && target !== 'hf')
    throw usage(`"${target} ${repo}" names no model`, 'svc inspect hf ORG/NAME')
  const path = resolve(session.terminal.cwd, target)
  const isPath = repo === undefined && existsSync(path)
  if (!isPath) await awaitDaemon(session)
  const { findings, unread } =
    repo !== undefined
      ? await ofHub(session, repo)
      : await ofPath(isPath ? path : (await madeView(session, target)).folder)
  if (session.json) session.document({ findings, unread })
  else {
    const rows = findings.map(({ file, key = '', is, what }) => [
      is === 'runs-code' ? 'RUNS CODE' : 'MALFORMED',
      file,
      key,
      what
    ])
    if (rows.length > 0) session.table(rows)
    if (rows.length === 0) session.note('nothing that runs code, and nothing malformed')
    if (unread.length > 0)
      session.note(
        `not read: ${unread.slice(0, 5).join(', ')}${unread.length > 5 ? `, and ${unread.length - 5} more` : ''}`
      )
  }
  if (options.strict === true && findings.length > 0)
    throw new CliError('verification', `${count(findings.length, 'finding')}`, { code: 'E_CHECK_FAILED' })
}

/** A file that can be looked into. */
export interface ReadableFile extends ListedFile {
  readonly readAt: ReadAt
}

/** The files of a model that is open. Tars are not opened. */
export const openedFiles = ({ files, companions }: OpenResult): ReadableFile[] => [
  ...files.flatMap(({ name, size, path }) =>
    name === undefined ? [] : { name, sizeBytes: size, readAt: readerOf(path) }
  ),
  ...(companions?.files ?? []).flatMap(({ path, size, blobPath }) =>
    blobPath === undefined ? [] : { name: path, sizeBytes: size, readAt: readerOf(blobPath) }
  )
]

/** What runs code in a model here, or is malformed, in a line; undefined for nothing. */
export async function inspectedLine(files: readonly ReadableFile[]): Promise<string | undefined> {
  const readers = new Map(files.map(({ name, readAt }) => [name, readAt]))
  const { findings } = await inspectFiles(files, (name) => readers.get(name))
  const [first, ...more] = findings
  if (first === undefined) return undefined
  const { is, file, key, what } = first
  const found = is === 'runs-code' ? 'RUNS CODE' : 'MALFORMED'
  return `${found} ${file}${key === undefined ? '' : ` (${key})`} ${what}${more.length === 0 ? '' : `, and ${more.length} more`}`
}

/** The daemon has the token, and reads small files and headers. */
async function ofHub(session: Session, text: string): Promise<Inspection> {
  const source = tryParseHubSource(text)
  if (source === undefined) throw usage(`"${text}" is not a repository of the hub`)
  const { repo, revision } = source
  const asked = session.client.inspectHf({ repo, ...(revision !== undefined && { revision }) })
  const { findings, unread } = await sayingWhatWaits(session, `asking the hub what ${repo} contains`, asked)
  return { findings: findings as readonly ModelFinding[], unread }
}

const MAX_FILES = 100_000

/** A file, or a folder with everything below it; links are followed to files, as loaders do. */
async function ofPath(path: string): Promise<Inspection> {
  const root = await stat(path)
  const paths = new Map<string, string>()
  if (root.isFile()) paths.set(path.slice(path.lastIndexOf('/') + 1), path)
  else await walk(path, '', paths)
  const files: ListedFile[] = []
  for (const [name, at] of paths) files.push({ name, sizeBytes: (await stat(at)).size })
  return inspectFiles(files, (name) => readerOf(paths.get(name)!))
}

async function walk(folder: string, below: string, into: Map<string, string>): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (into.size > MAX_FILES) throw new CliError('failed', `${folder}: more than ${MAX_FILES} files`)
    const at = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (entry.name !== '.git') await walk(at, `${below}${entry.name}/`, into)
    } else if (await isFile(entry, at)) into.set(below + entry.name, at)
  }
}

const isFile = async (entry: Dirent, at: string): Promise<boolean> =>
  entry.isFile() || (entry.isSymbolicLink() && (await stat(at).catch(() => undefined))?.isFile() === true)

const readerOf =
  (path: string): ReadAt =>
  async (offset, lengthBytes) => {
    const file = await open(path)
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(lengthBytes), 0, lengthBytes, offset)
      return buffer.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  }
