import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import {
  ClassifyError,
  type HeaderSummary,
  type ImportPlan,
  planArtifacts,
  readConfig,
  readGgufHead,
  readSafetensorsHeader,
  recognise
} from '@svc/classify'
import { pieceLayer, piecesRoot, rootOfPieceLayer } from '@svc/metainfo'
import type { HeaderRead, OffloadReply, OffloadResults, OffloadTask, PlanTask } from './task.ts'

/** A file read in place; short only at its end. */
async function headerOf({ path, what, sizeBytes }: HeaderRead): Promise<HeaderSummary> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const readAt = async (offset: number, lengthBytes: number): Promise<Uint8Array> => {
      const bytes = new Uint8Array(Math.max(0, Math.min(lengthBytes, sizeBytes - offset)))
      let filled = 0
      while (filled < bytes.length) {
        const count = readSync(fd, bytes, filled, bytes.length - filled, offset + filled)
        if (count === 0) break
        filled += count
      }
      return bytes.subarray(0, filled)
    }
    return await (what === 'gguf-head' ? readGgufHead(readAt, sizeBytes) : readSafetensorsHeader(readAt, sizeBytes))
  } finally {
    closeSync(fd)
  }
}

async function plan(task: PlanTask): Promise<ImportPlan> {
  const headers = new Map<string, HeaderSummary>()
  for (const header of task.headers) headers.set(header.name, await headerOf(header))
  const config =
    task.config === undefined ? undefined : readConfig(task.config === 'tooLarge' ? undefined : task.config)
  return planArtifacts(task.recognition, { headers, config, licences: task.licences })
}

/** undefined when the cached leaves are not those of a file of that size, or do not fold to one root. */
function layer({
  path,
  sizeBytes,
  pieceLengthBytes
}: Extract<OffloadTask, { kind: 'layer' }>): OffloadResults['layer'] {
  const expected = Math.ceil(sizeBytes / 16_384) * 32
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    if (fstatSync(fd).size !== expected) return undefined
    const leaves = readFileSync(fd)
    const pieces = pieceLayer(leaves, sizeBytes, pieceLengthBytes)
    const root =
      sizeBytes > pieceLengthBytes
        ? rootOfPieceLayer(pieces, sizeBytes, pieceLengthBytes)
        : piecesRoot(leaves, sizeBytes)
    return { root, layer: pieces }
  } finally {
    closeSync(fd)
  }
}

async function run(task: OffloadTask): Promise<unknown> {
  switch (task.kind) {
    case 'root':
      return piecesRoot(task.leaves, task.sizeBytes)
    case 'layer':
      return layer(task)
    case 'recognise':
      return recognise(task.listing)
    case 'plan':
      return plan(task)
  }
}

// Requests go first. On Linux this is the priority of the thread; elsewhere it would be that of the whole process.
if (process.platform === 'linux') {
  try {
    setPriority(0, 5)
  } catch {
    // A sandbox may refuse: nothing depends on it.
  }
}

let turn: Promise<void> = Promise.resolve()
parentPort!.on('message', ({ id, task }: { id: number; task: OffloadTask }) => {
  turn = turn.then(async () => {
    let reply: OffloadReply
    try {
      reply = { id, result: await run(task) }
    } catch (error) {
      const { message, stack } = error as Error
      reply =
        error instanceof ClassifyError
          ? { id, failure: { code: error.code, message, details: error.details } }
          : { id, failure: { message, stack } }
    }
    parentPort!.postMessage(reply)
  })
})
