import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { generateArtifacts } from '../harness/generated-store.ts'
import { interleave, median, medianRatio } from '../harness/measure.ts'
import { formatSeconds } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

const HERE = new URL('..', import.meta.url).pathname
const PYTHON = process.env.SVC_PYTHON ?? 'python3'
const MAX_IMPORT_SECONDS = 0.06
const MAX_OPEN_SECONDS = 0.015
const COMMIT = '0123456789abcdef0123456789abcdef01234567'

/** Each prints the milliseconds of its import and of finding one model, as a JSON list. */
const OURS = `
const begun = performance.now()
const { readLibrary } = await import('@svc/library')
const imported = performance.now()
const library = await readLibrary({ root: process.argv[1] })
const { files, missing } = await library.open(process.argv[2])
const opened = performance.now()
if (missing !== undefined || files.length < 2) throw new Error('the model is not whole')
await library.close()
console.log(JSON.stringify([imported - begun, opened - imported]))`
const LLAMA = `
const begun = performance.now()
const { resolveModelFile } = await import('node-llama-cpp')
const imported = performance.now()
await resolveModelFile(process.argv[2], { directory: process.argv[1], download: false, cli: false })
console.log(JSON.stringify([imported - begun, performance.now() - imported]))`
const HUB = `
import json, sys, time
begun = time.perf_counter()
from huggingface_hub import try_to_load_from_cache
imported = time.perf_counter()
for name in ('config.json', 'model.safetensors'):
    assert isinstance(try_to_load_from_cache(sys.argv[2], name, cache_dir=sys.argv[1]), str)
print(json.dumps([(imported - begun) * 1e3, (time.perf_counter() - imported) * 1e3]))`

interface Found {
  readonly importSeconds: number
  readonly openSeconds: number
}

export const libraryRow: Row = {
  name: 'library',
  summary:
    'the library in a program of one’s own: its import, and one of many models, against node-llama-cpp and the hub’s own client',
  async run({ scratch, profile, say }) {
    const models = profile.artifacts
    const place = await scratch.folder()
    const [root, folder, cache] = ['root', 'models', 'cache'].map((name) => join(place, name)) as [
      string,
      string,
      string
    ]
    await generateArtifacts(root, models)
    makePeers(folder, cache, models)
    say(`${models} models made`)
    const middle = Math.floor(models / 2)
    const node = (program: string, ...args: string[]) =>
      found(process.execPath, '--input-type=module', '-e', program, ...args)
    const rounds = await interleave(profile.shortRuns, {
      svc: () => node(OURS, root, `svc:///org${Math.floor(middle / 100)}/model-${middle}:bf16`),
      llama: () => node(LLAMA, folder, `model-${middle}.gguf`),
      hub: () => found(PYTHON, '-c', HUB, cache, `org/model-${middle}`)
    })
    const line = (what: string, of: (one: Found) => number, maxSeconds: number): Line => {
      const [svc, llama, hub] = [rounds.svc.map(of), rounds.llama.map(of), rounds.hub.map(of)]
      return {
        what,
        ours: formatSeconds(median(svc)),
        peer: `node-llama-cpp ${formatSeconds(median(llama))}, huggingface_hub ${formatSeconds(median(hub))}`,
        ratio: medianRatio(llama, svc),
        target: `≤ ${maxSeconds * 1000} ms`,
        met: median(svc) <= maxSeconds
      }
    }
    return [
      line('import of the library, cold', ({ importSeconds }) => importSeconds, MAX_IMPORT_SECONDS),
      line(`open one of ${models} models beside the owner`, ({ openSeconds }) => openSeconds, MAX_OPEN_SECONDS)
    ]
  }
}

async function found(command: string, ...args: string[]): Promise<Found> {
  const { stdout } = await promisify(execFile)(command, args, { cwd: HERE })
  const [importMs, openMs] = JSON.parse(stdout) as [number, number]
  return { importSeconds: importMs / 1000, openSeconds: openMs / 1000 }
}

/** As many models where the peers look for them. */
function makePeers(folder: string, cache: string, models: number): void {
  mkdirSync(folder)
  for (let n = 0; n < models; n++) {
    writeFileSync(join(folder, `model-${n}.gguf`), 'GGUF')
    const repo = join(cache, `models--org--model-${n}`)
    for (const part of ['blobs', 'refs', `snapshots/${COMMIT}`]) mkdirSync(join(repo, part), { recursive: true })
    writeFileSync(join(repo, 'refs/main'), COMMIT)
    for (const name of ['config.json', 'model.safetensors']) {
      writeFileSync(join(repo, 'blobs', name), '{}')
      symlinkSync(`../../blobs/${name}`, join(repo, 'snapshots', COMMIT, name))
    }
  }
}
