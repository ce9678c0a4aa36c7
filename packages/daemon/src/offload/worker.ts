import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import {
  type HeaderSummary,
  type PlannedArtifacts,
  planArtifacts,
  readConfig,
  readHeader,
  recognise
} from '@svc/classify'
import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import {
  ancestorLayer,
  pieceLayer,
  pieceLayerOfSubtrees,
  piecesRoot,
  rootOfPieceLayer,
  rootOfSubtrees,
  SUBTREE_LEVEL
} from '@svc/metainfo'
import { readAtOf } from '../read-at.ts'
import { RECOGNITION_NICE } from '../thread-priority.ts'
import { offloadErrors } from './pool.ts'
import type { HeaderRead, LayerRequest, OffloadTasks, PlanRequest } from './task.ts'

async function headerOf(header: HeaderRead): Promise<HeaderSummary> {
  const fd = openSync(header.path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    return await readHeader(header, readAtOf(fd, header.sizeBytes))
  } finally {
    closeSync(fd)
  }
}

async function plan(task: PlanRequest): Promise<PlannedArtifacts> {
  const headers = new Map<string, HeaderSummary>()
  for (const header of task.headers) headers.set(header.name, await headerOf(header))
  const config =
    task.config === undefined ? undefined : readConfig(task.config === 'tooLarge' ? undefined : task.config)
  return planArtifacts(task.recognition, { headers, config, licences: task.licences })
}

const MIB = 1 << 20

function root({ leaves, sizeBytes }: OffloadTasks['root']['request']): OffloadTasks['root']['response'] {
  if (sizeBytes <= MIB) return { root: piecesRoot(leaves, sizeBytes), subtrees: undefined }
  const subtrees = ancestorLayer(leaves, 0, SUBTREE_LEVEL)
  return { root: rootOfSubtrees(subtrees, sizeBytes), subtrees }
}

/** Undefined when the cached leaves do not fit a file of that size, or do not fold to one root. */
function layer({ path, sizeBytes, pieceLengthBytes }: LayerRequest): OffloadTasks['layer']['response'] {
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

yieldToOthers(RECOGNITION_NICE)

serveCalls<OffloadTasks>(
  {
    root,
    fold: ({ subtrees, sizeBytes, pieceLengthBytes }) => {
      const made = pieceLayerOfSubtrees(subtrees, pieceLengthBytes)
      return { root: rootOfPieceLayer(made, sizeBytes, pieceLengthBytes), layer: made }
    },
    layer,
    recognise,
    plan
  },
  { errors: offloadErrors, oneByOne: true }
)
