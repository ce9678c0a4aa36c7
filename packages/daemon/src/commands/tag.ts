import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { ErrorBody, ErrorCode, Status, TagEntry } from '@svc/client/protocol'
import {
  changeTag,
  Documents,
  ReplacedFiles,
  Repos,
  type StorePlace,
  type TagChange,
  type UnreadableStateError
} from '@svc/library/parts'
import { formatRepoId, isDigest, parseRepoId, parseTag, RefError, type RepoId } from '@svc/ref'
import { DaemonError, StartError } from '../errors.ts'
import { isLocked, lookAtStore, openStore } from '../store-opening.ts'
import { askSocket } from './ask-socket.ts'

export interface TagCommandContext {
  readonly store: StorePlace
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

async function list(only: RepoId | undefined, { store, print }: TagCommandContext): Promise<void> {
  await lookAtStore(store, { mayMake: false })
  const repos = new Repos(store.root, ReplacedFiles.forReading(join(store.root, 'state')))
  const unreadable: UnreadableStateError[] = []
  for await (const { ns, name, state } of repos.list((error) => unreadable.push(error))) {
    if (only !== undefined && (only.ns !== ns || only.name !== name)) continue
    for (const [tag, digest] of [...state.tags].sort(([a], [b]) => (a < b ? -1 : 1)))
      print(`${ns}/${name}:${tag} ${digest}`)
  }
  // the others are listed by now
  const asked = unreadable.filter(({ file }) => only === undefined || file === `state/repos/${formatRepoId(only)}.json`)
  if (asked.length > 0) throw new StartError(asked.map(({ message }) => message).join('; '))
}

async function change(target: string, index: TagChange['index'], context: TagCommandContext): Promise<void> {
  const colon = target.indexOf(':')
  if (colon < 0) throw new StartError('write a tag as NS/NAME:TAG')
  const { ns, name } = orRefused(parseRepoId, target.slice(0, colon))
  const tag = orRefused(parseTag, target.slice(colon + 1))
  const digest = await changed({ ns, name, tag, index }, context)
  context.print(index === null ? `removed ${ns}/${name}:${tag} (${digest})` : `${ns}/${name}:${tag} ${digest}`)
}

async function changed(wanted: TagChange, { store, socketPath }: TagCommandContext): Promise<string> {
  let opened
  try {
    opened = await openStore(store, { mayMake: false, hashThreads: 1 })
  } catch (error) {
    if (!isLocked(error)) throw error
    return askDaemon(wanted, await realpath(store.root), socketPath)
  }
  try {
    const repos = new Repos(opened.root, await ReplacedFiles.open(join(opened.root, 'state')))
    return await changeTag(wanted, repos, new Documents(opened))
  } finally {
    await opened.close()
  }
}

/** @param root that the daemon at the socket must have */
async function askDaemon({ ns, name, tag, index }: TagChange, root: string, socketPath: string): Promise<string> {
  const status = await ask<Status>(socketPath, '/v1/status')
  if (status.root !== root)
    throw new StartError(
      `the daemon at ${socketPath} has the root ${status.root}, not ${root}; name the socket of the other with --socket`
    )
  const path = `/v1/tags/${[ns, name, tag].map(encodeURIComponent).join('/')}`
  const body = JSON.stringify(index === null || index === 'current' ? {} : { digest: index })
  const { digest } = await ask<TagEntry>(
    socketPath,
    path,
    index === null ? { method: 'DELETE' } : { method: 'PUT', body }
  )
  return digest
}

/** @throws StartError without an answer; DaemonError with the code of the daemon */
async function ask<T>(
  socketPath: string,
  path: string,
  what?: { readonly method: string; readonly body?: string }
): Promise<T> {
  const { status, text } = await askSocket(socketPath, path, what).catch((cause: Error) => {
    throw new StartError(
      `a daemon uses the root, but cannot be reached at ${socketPath} (${cause.message}); name its socket with --socket`,
      { cause }
    )
  })
  const answer = JSON.parse(text) as T & { readonly error?: ErrorBody & { readonly code: ErrorCode } }
  if (status === 200) return answer
  throw new DaemonError(answer.error?.code ?? 'E_INTERNAL', answer.error?.message ?? 'the daemon did not answer', {
    candidates: answer.error?.candidates
  })
}
