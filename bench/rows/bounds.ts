import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Api } from '../harness/api.ts'
import { type BoundResult, runBound } from '../harness/bound.ts'
import { timeCommand } from '../harness/command.ts'
import { end } from '../harness/daemon.ts'
import { generateArtifacts, generateRepositories } from '../harness/generated-store.ts'
import { hasLoopDisk, LoopDisk } from '../harness/loop-disk.ts'
import { interleave, median } from '../harness/measure.ts'
import { writeCode, writeSafetensors } from '../harness/model-files.ts'
import { cpuSecondsOf, memoryOf } from '../harness/process-facts.ts'
import { formatMib, formatSeconds, formatSize } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'
import { Scratch } from '../harness/scratch.ts'

const SMALL_BYTES = 10 << 10
const SHARD_BYTES = 1 << 20
const DISK_BYTES = 2 * 2 ** 30
/** xfs takes no less. */
const MIN_XFS_BYTES = 512 << 20
/** Given as text: a file with types would bring Node's reader of types along, which takes 20 MiB. */
const SERVER = "require('node:http').createServer((_, response) => response.end('{}')).listen(process.argv[1])"
const START_TIMEOUT_MS = 30_000

/**
 * What plain programs take on the same machine, in the same run, for the part of a row's work that cannot be left out (`bench/bounds`). Run it
 * together with the rows that it belongs to.
 */
export const boundsRow: Row = {
  name: 'bounds',
  summary: 'what plain programs reach that do the unavoidable work of the local rows, and nothing else',
  async run(bench) {
    const { profile } = bench
    const ext4 = await onDisk(bench)
    return [
      await oneFile(bench),
      ...(await sharedBlocks(bench)),
      await manyFiles(bench, { sizeBytes: SMALL_BYTES, threads: 1, where: 'where the data lies' }),
      ...ext4,
      await manyFiles(bench, { sizeBytes: SHARD_BYTES, threads: 2, where: 'where the data lies' }),
      await bareServer(bench),
      await documents(bench, profile.artifacts),
      await documents(bench, profile.manyArtifacts),
      ...(await names(bench, profile.repositories)),
      ...(await idleLoop(bench)),
      await receivingLoop(bench)
    ]
  }
}

const line = (what: string, ours: string, note: string, more: Partial<Line> = {}): Line => ({
  what,
  ours,
  peer: '',
  target: '',
  note,
  ...more
})
const medianOf = (results: readonly BoundResult[], field: 'seconds' | 'cpuSeconds' | 'rssBytes'): number =>
  median(results.map((result) => result[field]))
const cpuNote = (results: readonly BoundResult[]): string => `CPU ${formatSeconds(medianOf(results, 'cpuSeconds'))}`

async function rounds(runs: number, once: () => Promise<BoundResult>): Promise<BoundResult[]> {
  const results: BoundResult[] = []
  for (let i = 0; i < runs; i++) results.push(await once())
  return results
}

async function oneFile({ scratch, profile }: Bench): Promise<Line> {
  const folder = await scratch.folder()
  const file = writeSafetensors(folder, 'model.safetensors', profile.largeBytes)
  const { openssl, plain } = await interleave<
    { seconds: number; cpuSeconds: number; rssBytes: number },
    'openssl' | 'plain'
  >(profile.runs, {
    openssl: async () => ({ ...(await timeCommand('openssl dgst -sha256 "$1"', [file])), rssBytes: 0 }),
    plain: async () => {
      const out = await scratch.folder()
      const result = await runBound('one-file', [file, join(out, 'copy')])
      await scratch.drop(out)
      return result
    }
  })
  await scratch.drop(folder)
  const [ours, theirs] = [medianOf(plain, 'seconds'), medianOf(openssl, 'seconds')]
  return line(`import: one file of ${formatSize(profile.largeBytes)}`, formatSeconds(ours), cpuNote(plain), {
    peer: `openssl ${formatSeconds(theirs)}`,
    ratio: theirs / ours
  })
}

/** On xfs, as `reflink` and `adopt` are: what is read is the cloned file, which the page cache has, or its clone, which comes from the disk. */
async function sharedBlocks({ profile }: Bench): Promise<Line[]> {
  if (!hasLoopDisk('xfs')) return []
  const disk = new LoopDisk(MIN_XFS_BYTES + 2 * profile.largeBytes, 'xfs')
  const scratch = new Scratch(disk.path)
  try {
    const folder = await scratch.folder()
    const file = writeSafetensors(folder, 'model.safetensors', profile.largeBytes)
    const clone = async (read: 'source' | 'clone'): Promise<BoundResult> => {
      const out = await scratch.folder()
      const result = await runBound('shared-blocks', [file, join(out, 'copy'), read])
      await scratch.drop(out)
      return result
    }
    const results = await interleave<BoundResult, 'openssl' | 'source' | 'clone'>(profile.runs, {
      openssl: async () => ({ ...(await timeCommand('openssl dgst -sha256 "$1"', [file])), rssBytes: 0 }),
      source: () => clone('source'),
      clone: () => clone('clone')
    })
    const theirs = medianOf(results.openssl, 'seconds')
    return (['source', 'clone'] as const).map((read) => {
      const ours = medianOf(results[read], 'seconds')
      const what = `reflink, adopt: one file of ${formatSize(profile.largeBytes)}, hashed from ${read === 'source' ? 'the source' : 'its clone'}`
      return line(what, formatSeconds(ours), cpuNote(results[read]), {
        peer: `openssl ${formatSeconds(theirs)}`,
        ratio: theirs / ours
      })
    })
  } finally {
    scratch.remove()
    disk.close()
  }
}

async function onDisk(bench: Bench): Promise<Line[]> {
  if (!hasLoopDisk()) return []
  const disk = new LoopDisk(DISK_BYTES)
  const scratch = new Scratch(disk.path)
  try {
    return [await manyFiles({ ...bench, scratch }, { sizeBytes: SMALL_BYTES, threads: 1, where: 'on ext4' })]
  } finally {
    scratch.remove()
    disk.close()
  }
}

async function manyFiles(
  { scratch, profile }: Bench,
  { sizeBytes, threads, where }: { readonly sizeBytes: number; readonly threads: number; readonly where: string }
): Promise<Line> {
  const folder = await scratch.folder()
  for (let i = 0; i < profile.smallFiles; i++) writeCode(folder, `part${i}.py`, sizeBytes)
  const results = await rounds(profile.runs, async () => {
    const out = await scratch.folder()
    await timeCommand('sync')
    const result = await runBound('many-files', [folder, out, String(threads)])
    await scratch.drop(out)
    return result
  })
  await scratch.drop(folder)
  const what = `import: ${profile.smallFiles} files of ${formatSize(sizeBytes)}, ${where}`
  return line(what, formatSeconds(medianOf(results, 'seconds')), `${cpuNote(results)}; ${threads} thread(s)`)
}

/** As the daemon is measured: from the start of the process to the first answer. */
async function bareServer({ scratch, profile }: Bench): Promise<Line> {
  const folder = await scratch.folder()
  const owns: number[] = []
  const results = await rounds(profile.runs, async () => {
    const socketPath = join(folder, `${owns.length}.sock`)
    const begun = performance.now()
    const child = spawn(process.execPath, ['-e', SERVER, socketPath], { stdio: 'inherit' })
    const api = new Api(socketPath)
    try {
      while (
        !(await api.get('/').then(
          () => true,
          () => false
        ))
      ) {
        if (performance.now() - begun > START_TIMEOUT_MS) throw new Error('the bare server did not start')
        await delay(5)
      }
      const seconds = (performance.now() - begun) / 1000
      const { rssBytes, ownBytes } = memoryOf(child.pid!)
      owns.push(ownBytes)
      return { seconds, cpuSeconds: cpuSecondsOf(child.pid!), rssBytes }
    } finally {
      api.close()
      await end(child)
    }
  })
  await scratch.drop(folder)
  const note = `${cpuNote(results)}; ${formatMib(median(owns))} of it are its own`
  return line('start: Node with an HTTP server', formatMib(medianOf(results, 'rssBytes')), note)
}

async function documents({ scratch, profile }: Bench, artifacts: number): Promise<Line> {
  const place = await scratch.folder()
  const root = join(place, 'root')
  await generateArtifacts(root, artifacts)
  const results = await rounds(Math.min(profile.runs, 3), () => runBound('documents', [root]))
  await scratch.drop(place)
  const seconds = medianOf(results, 'seconds')
  return line(`start: documents of ${artifacts} artifacts`, formatSeconds(seconds), cpuNote(results))
}

async function names({ scratch, profile }: Bench, repositories: number): Promise<Line[]> {
  const place = await scratch.folder()
  const root = join(place, 'root')
  await generateRepositories(root, repositories)
  const results = await rounds(Math.min(profile.runs, 3), () => runBound('names', [root]))
  await scratch.drop(place)
  const again = median(results.map(({ againSeconds = Number.NaN }) => againSeconds))
  return [
    line(`list of ${repositories} repositories, first`, formatSeconds(medianOf(results, 'seconds')), ''),
    line(`list of ${repositories} repositories, warm`, formatSeconds(again), '')
  ]
}

/** Beside the threads of `together`: two of the store, two of the engine's and of the flat hash; and alone. */
async function idleLoop({ profile }: Bench): Promise<Line[]> {
  const lines: Line[] = []
  for (const [yielding, eager] of [
    [0, 0],
    [2, 0],
    [2, 2]
  ] as const) {
    const {
      p50Ms = 0,
      p99Ms = 0,
      maxMs = 0
    } = await runBound('idle-loop', [profile.loadSeconds, yielding, eager].map(String))
    const what = `event loop p99, idle, beside ${yielding} threads at nice 10 and ${eager} at nice 8`
    lines.push(line(what, `${p99Ms.toFixed(2)} ms`, `p50 ${p50Ms.toFixed(2)} ms, max ${maxMs.toFixed(1)} ms`))
  }
  return lines
}

/** The bytes of `together`'s fill, received and hashed as there, beside two threads of the store. */
async function receivingLoop({ scratch, profile }: Bench): Promise<Line> {
  const mib = Math.max(1, Math.floor(profile.largeBytes / 4 / 2 ** 20))
  const results = await rounds(profile.runs, async () => {
    const folder = await scratch.folder()
    const result = await runBound('receiving-loop', [folder, String(mib), '2'])
    await scratch.drop(folder)
    return result
  })
  const of = (field: 'p50Ms' | 'p99Ms' | 'maxMs'): string =>
    `${median(results.map((result) => result[field] ?? Number.NaN)).toFixed(2)} ms`
  const note = `p50 ${of('p50Ms')}, max ${of('maxMs')}; ${cpuNote(results)}`
  return line(`event loop p99, receiving ${mib} MiB, beside 2 threads at nice 10`, of('p99Ms'), note)
}
