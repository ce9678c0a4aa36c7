import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startLoad } from '../harness/load.ts'
import { writeCode, writeSafetensors } from '../harness/model-files.ts'
import { formatMib, formatRate, formatSeconds, formatSize } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'

const MAX_RSS_BYTES = 250 << 20
const MAX_MANY_RSS_BYTES = 260e6
const SMALL_BYTES = 10 << 10
const SAMPLE_MS = 50

export const importMemoryRow: Row = {
  name: 'import-memory',
  summary:
    'memory of the daemon while one large file is imported, with the latency of resolve, and while thousands of small ones are',
  async run(bench) {
    return [...(await oneLargeFile(bench)), await manySmallFiles(bench)]
  }
}

/** Every small file is opened, hashed, synced and named in a manifest. */
async function manySmallFiles({ scratch, daemons, profile: { memoryFiles } }: Bench): Promise<Line> {
  const folder = await scratch.folder()
  writeSafetensors(folder, 'model.safetensors', 1 << 20)
  for (let at = 1; at < memoryFiles; at++) writeCode(folder, `modeling_part${at}.py`, SMALL_BYTES)
  const place = await scratch.folder()
  mkdirSync(join(place, 'root'), { mode: 0o700 })
  const daemon = await daemons.start({ root: join(place, 'root') })
  try {
    const cpuBefore = daemon.cpuSeconds()
    const { seconds, job } = await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/many' })
    if (job.result?.skipped !== 0) throw new Error('some of the files were not imported')
    const { peakBytes } = daemon.memory()
    return {
      what: `RSS during an import of ${memoryFiles} files of ${formatSize(SMALL_BYTES)}`,
      ours: `${formatMib(peakBytes)} at most`,
      peer: '',
      target: `≤ ${formatMib(MAX_MANY_RSS_BYTES)}`,
      met: peakBytes <= MAX_MANY_RSS_BYTES,
      note: `${formatSeconds(seconds)}, CPU ${formatSeconds(daemon.cpuSeconds() - cpuBefore)}`
    }
  } finally {
    await daemon.stop()
  }
}

async function oneLargeFile({ scratch, daemons, profile }: Bench): Promise<Line[]> {
  const small = await scratch.folder()
  writeSafetensors(small, 'model.safetensors', 1 << 20)
  const large = await scratch.folder()
  writeSafetensors(large, 'model.safetensors', profile.memoryBytes)
  const place = await scratch.folder()
  mkdirSync(join(place, 'root'), { mode: 0o700 })
  const daemon = await daemons.start({ root: join(place, 'root') })
  try {
    await daemon.api.job('/v1/import/local', { paths: [small], as: 'bench/small' })
    const samples: number[] = []
    const timer = setInterval(() => samples.push(daemon.memory().rssBytes), SAMPLE_MS)
    const load = startLoad({
      socketPath: daemon.api.socketPath,
      path: `/v1/resolve?ref=${encodeURIComponent('svc:///bench/small:bf16')}`,
      connections: 1,
      seconds: 300,
      maxRequests: 300_000,
      pauseMs: 2
    })
    try {
      const { seconds } = await daemon.api.job('/v1/import/local', { paths: [large], as: 'bench/large' })
      load.stop()
      const { p50Ms, p99Ms, maxMs, requests } = await load.result
      const { peakBytes } = daemon.memory()
      return [
        {
          what: `RSS during an import of ${formatSize(profile.memoryBytes)}`,
          ours: `${formatMib(Math.max(peakBytes, ...samples))} at most`,
          peer: '',
          target: '≤ 250 MiB',
          met: peakBytes <= MAX_RSS_BYTES,
          note: formatRate(profile.memoryBytes / seconds)
        },
        {
          what: 'resolve p99 meanwhile',
          ours: `${p99Ms.toFixed(2)} ms`,
          peer: '',
          target: '< 5 ms',
          met: p99Ms < 5,
          note: `p50 ${p50Ms.toFixed(2)} ms, max ${maxMs.toFixed(1)} ms, ${requests} requests`
        }
      ]
    } finally {
      clearInterval(timer)
      load.stop()
    }
  } finally {
    await daemon.stop()
  }
}
