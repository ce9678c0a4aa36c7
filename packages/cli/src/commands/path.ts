import { ClientError, type OpenFile, type View } from '@svc/client'
import { usage } from '../errors.ts'
import { isWeights, namedFiles } from '../models/model-facts.ts'
import { canonicalRef, shortRef } from '../models/reference.ts'
import { incomplete, loadPath, madeView, splitTarget } from '../models/runtime-view.ts'
import type { Session } from '../session.ts'

export interface PathOptions {
  readonly dir?: boolean
  readonly all?: boolean
  readonly blob?: boolean
}

/** `svc path REF[#FILE] [--dir|--all|--blob]`: the path to pass to a program. */
export async function path(session: Session, text: string, options: PathOptions): Promise<void> {
  const { ref, file } = splitTarget(text)
  if (options.dir === true && (options.all === true || options.blob === true || file !== undefined))
    throw usage('--dir is the folder of the whole model', `svc path --dir ${ref}`)
  if (options.blob === true) return blobPaths(session, ref, file, options.all === true)
  const view = await viewOrBlobs(session, ref, options, file)
  if (view === undefined) return
  if (options.dir === true) {
    if (session.json) return session.document({ path: view.folder })
    return session.print(view.folder)
  }
  const parts = view.files.filter(isWeights)
  if (session.json && file === undefined) {
    return session.document(parts.map(factsOf))
  }
  const found = loadPath(view, file)
  if (session.json) return session.document({ path: found })
  if (options.all === true && file === undefined) for (const part of parts) session.print(part.path)
  else session.print(found)
}

/**
 * The view that a path lies in. On a disk that takes no more files the blob of a whole GGUF has to do, which is printed:
 * runtimes load it under any name. @throws CliError, ClientError
 */
async function viewOrBlobs(
  session: Session,
  ref: string,
  options: PathOptions,
  file: string | undefined
): Promise<View | undefined> {
  try {
    return await madeView(session, ref)
  } catch (error) {
    const isDisk = error instanceof ClientError && ['E_NO_SPACE', 'E_INTERNAL'].includes(error.code)
    if (!isDisk || file !== undefined || options.dir === true) throw error
    const { files, missing } = await session.client.open(await canonicalRef(session, ref))
    const weights = files.filter(isWeights)
    if (missing !== undefined || weights.length !== 1 || weights[0]!.kind !== 'weights.gguf') throw error
    session.note(`no folder with real names can be made (${error.message}): this is the file in the store`)
    await blobPaths(session, ref, undefined, false)
    return undefined
  }
}

const factsOf = ({ name, kind, part, path, size }: Pick<OpenFile, 'name' | 'kind' | 'part' | 'path' | 'size'>) => ({
  name,
  kind,
  part,
  path,
  size
})

/** Paths of the files in the store: for a split model the first shard, unless all are requested. */
async function blobPaths(session: Session, text: string, name: string | undefined, all: boolean): Promise<void> {
  const result = await session.client.open(await canonicalRef(session, text))
  const files = namedFiles(result).filter((file) => (name === undefined ? isWeights(file) : file.name === name))
  if (files.length === 0 || result.missing !== undefined) throw incomplete(result.ref, result.missing)
  if (session.json) {
    return session.document(files.map(factsOf))
  }
  const partOf = ({ part = 0 }: OpenFile): number => part
  const split = files.length > 1 && files.every(({ kind, part }) => kind === 'weights.gguf' && part !== undefined)
  if (split && !all) {
    session.note(`first of ${files.length} parts; all of them: svc path --blob --all ${shortRef(result.ref)}`)
    return session.print(files.reduce((a, b) => (partOf(b) < partOf(a) ? b : a)).path)
  }
  for (const file of files) session.print(file.path)
}
