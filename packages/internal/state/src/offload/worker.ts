import { closeSync, constants, openSync } from 'node:fs'
import {
  configCache,
  ggufCache,
  ggufDefect,
  ggufFacts,
  type HeaderSummary,
  type Inspection,
  inspectFiles,
  inspectGgufHead,
  inspectText,
  type PlannedArtifacts,
  planArtifacts,
  type ReadAt,
  readConfig,
  readHeader,
  recognize,
  walkGgufHead
} from '@svc/classify'
import { RECOGNITION_NICE, serveCalls, yieldToOthers } from '@svc/internal-workers'
import { ancestorLayer, pieceLayerOfSubtrees, rootOfPieceLayer, rootOfSubtrees, SUBTREE_LEVEL } from '@svc/metainfo'
import { readAtOf } from '../read-at.ts'
import { offloadErrors } from './pool.ts'
import type { HeaderRead, InspectedFile, OffloadTasks, PlanRequest } from './task.ts'

async function headerOf(header: HeaderRead): Promise<HeaderSummary> {
  const fd = openSync(header.path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    return await readHeader(header, readAtOf(fd, header.sizeBytes))
  } finally {
    closeSync(fd)
  }
}

async function inspect({ files }: OffloadTasks['inspect']['request']): Promise<Inspection> {
  const byName = new Map(files.map((file) => [file.name, file]))
  const readerOf =
    ({ path, offset: start, sizeBytes }: InspectedFile): ReadAt =>
    async (offset, lengthBytes) => {
      const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
      try {
        const left = Math.max(0, Math.min(lengthBytes, sizeBytes - offset))
        return await readAtOf(fd, start + sizeBytes)(start + offset, left)
      } finally {
        closeSync(fd)
      }
    }
  return inspectFiles(files, (name) => readerOf(byName.get(name)!))
}

async function plan(task: PlanRequest): Promise<PlannedArtifacts> {
  const headers = new Map<string, HeaderSummary>()
  for (const header of task.headers) headers.set(header.name, await headerOf(header))
  const config =
    task.config === undefined ? undefined : readConfig(task.config === 'tooLarge' ? undefined : task.config)
  return planArtifacts(task.recognition, { headers, config, licences: task.licences })
}

function root({ leaves, sizeBytes }: OffloadTasks['root']['request']): OffloadTasks['root']['response'] {
  const subtrees = ancestorLayer(leaves, 0, SUBTREE_LEVEL)
  return { root: rootOfSubtrees(subtrees, sizeBytes), subtrees }
}

function cache(task: OffloadTasks['cache']['request']): OffloadTasks['cache']['response'] {
  if ('config' in task) return { shape: configCache(task.config) }
  const { head, sizeBytes } = task
  const defect = ggufDefect(head, sizeBytes)
  return { shape: ggufCache(ggufFacts(head, sizeBytes)), ...(defect !== undefined && { defect }) }
}

yieldToOthers(RECOGNITION_NICE)

serveCalls<OffloadTasks>(
  {
    root,
    fold: ({ subtrees, sizeBytes, pieceLengthBytes }) => {
      const made = pieceLayerOfSubtrees(subtrees, pieceLengthBytes)
      return { root: rootOfPieceLayer(made, sizeBytes, pieceLengthBytes), layer: made }
    },
    recognize: ({ listing, names }) => recognize(listing, names),
    plan,
    header: ({ fd, ...read }) => readHeader(read, readAtOf(fd, read.sizeBytes)),
    inspect,
    inspectText: ({ name, bytes }) => inspectText(name, bytes),
    inspectHead: ({ head, sizeBytes }) => inspectGgufHead(head, sizeBytes),
    walk: ({ head, sizeBytes }) => walkGgufHead(head, sizeBytes),
    config: readConfig,
    cache
  },
  { errors: offloadErrors, oneByOne: true }
)
