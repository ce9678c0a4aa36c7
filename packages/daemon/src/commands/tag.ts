import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { CasError, openDiskStore } from '@svc/cas'
import { formatRepoId, isDigest, parseRepoId, parseTag, RefError, type RepoId } from '@svc/ref'
import { TAG_PATH, type TagRequest } from '../api/tag-route.ts'
import { DaemonError, StartError } from '../errors.ts'
import { Documents } from '../library/documents.ts'
import { endMove } from '../library/move-marker.ts'
import { ReplacedFiles } from '../library/replace.ts'
import { Repos } from '../library/repos.ts'
import type { UnreadableStateError } from '../library/strict.ts'
import { changeTag, type TagChange } from '../library/tags.ts'
import { askSocket } from './ask-socket.ts'

export interface TagCommandContext {
  readonly root: string
  readonly socketPath: string
  readonly print: (line: string) => void
}

/**
 * `svcd tag set|rm|ls`. Only the holder of the root's lock writes its state: a running daemon on request, else this
 * process. Listing only reads files, which are replaced atomically. @throws StartError, DaemonError
 */
export async function tagCommand(words: readonly string[], context: TagCommandContext): Promise<void> {
  const [verb, target, index, ...rest] = words
  if (rest.length > 0) throw usage()
  if (verb === 'ls' && index === undefined)
    return list(target === undefined ? undefined : orRefused(parseRepoId, target), context)
  if (verb === 'rm' && target !== undefined && index === undefined) return change(target, null, context)
  if (verb === 'set' && target !== undefined) {
    if (index !== undefined && !isDigest(index)) throw new StartError('write the index as sha256:<64 hex>')
    return change(target, index ?? 'current', context)
  }
  throw usage()
}

const usage = (): StartError =>
  new StartError('usage: svcd tag set NS/NAME:TAG [sha256:<hex>] | svcd tag rm NS/NAME:TAG | svcd tag ls [NS/NAME]')

function orRefused<T>(parse: (text: string) => T, text: string): T {
  try {
    return parse(text)
  } catch (cause) {
    throw cause instanceof RefError ? new StartError(cause.message, { cause }) : cause
  }
}

async function list(only: RepoId | undefined, { root, print }: TagCommandContext): Promise<void> {
  const repos = new Repos(root, ReplacedFiles.forReading(join(root, 'state')))
  const unreadable: UnreadableStateError[] = []
  for await (const { ns, name, state } of repos.list((error) => unreadable.push(error))) {
    if (only !== undefined && (only.ns !== ns || only.name !== name)) continue
    for (const [tag, digest] of [...state.tags].sort(([a], [b]) => (a < b ? -1 : 1)))
      print(`${ns}/${name}:${tag} ${digest}`)
  }
  // the others are listed by now
  const asked = unreadable.filter(({ file }) => only === undefined || file === `state/repos/${formatRepoId(only)}.json`)
  if (asked.length > 0) throw new StartError(asked.map(({ message }) => message).join('\n'))
}

async function change(target: string, index: TagChange['index'], context: TagCommandContext): Promise<void> {
  const colon = target.indexOf(':')
  if (colon < 0) throw new StartError('write a tag as NS/NAME:TAG')
  const { ns, name } = orRefused(parseRepoId, target.slice(0, colon))
  const tag = orRefused(parseTag, target.slice(colon + 1))
  const digest = await changed({ root: context.root, ns, name, tag, index }, context)
  context.print(index === null ? `removed ${ns}/${name}:${tag} (${digest})` : `${ns}/${name}:${tag} ${digest}`)
}

async function changed(wanted: TagRequest, { root, socketPath }: TagCommandContext): Promise<string> {
  let store
  try {
    store = await openDiskStore({ root, hashThreads: 1 })
  } catch (error) {
    if (error instanceof CasError && error.code === 'E_LOCKED')
      return askDaemon({ ...wanted, root: await realpath(root) }, socketPath)
    throw error instanceof CasError ? new StartError(error.message, { cause: error }) : error
  }
  try {
    await endMove(store.root)
    const repos = new Repos(store.root, await ReplacedFiles.open(join(store.root, 'state')))
    return await changeTag(wanted, repos, new Documents(store))
  } finally {
    await store.close()
  }
}

async function askDaemon(wanted: TagRequest, socketPath: string): Promise<string> {
  const { text } = await askSocket(socketPath, TAG_PATH, { body: JSON.stringify(wanted) }).catch((cause: Error) => {
    throw new StartError(
      `a daemon uses the root, but cannot be reached at ${socketPath} (${cause.message}); name its socket with --socket`,
      { cause }
    )
  })
  const { digest, error } = JSON.parse(text) as {
    readonly digest?: string
    readonly error?: { readonly code: DaemonError['code']; readonly message: string }
  }
  if (digest !== undefined) return digest
  throw new DaemonError(error?.code ?? 'E_INTERNAL', error?.message ?? 'the daemon did not answer')
}
