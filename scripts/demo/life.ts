import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../../packages/client/src/index.ts'
import { type FakeHub, startFakeHub } from '../../packages/testkit/src/fake-hub.ts'
import { type GgufType, makeGguf, makeModelFolder, makeSafetensors } from '../../packages/testkit/src/models.ts'
import type { DemoDaemon, Stage } from './stage.ts'

const REPO = 'Demo/Tiny-GGUF'
const REF = 'demo/tiny-gguf:q8_0'
const OTHER = 'Demo/Other-GGUF'
const CLIENT = 'packages/testkit/src/stock-s3-client.ts'
const MIB = 1 << 20
/** Of the machine that gives a model to the other one. */
const LINK_BYTES_PER_SECOND = 4 * MIB
const TENSORS = 8
/** Room for either model and what an import sets aside, not for both with that. */
const QUOTA = 7_000_000

/** A model from the search to its newer version, evicted and brought back; and one that is read while it is fetched. */
export async function run(stage: Stage): Promise<void> {
  const hub = await startFakeHub()
  stage.later(() => hub.close())
  const source = join(stage.folder, 'model')
  makeModelFolder(source, {
    ggufs: {},
    files: { 'tiny-q8_0.gguf': weightsOf('Q8_0'), 'tiny-q4_k_m.gguf': weightsOf('Q4_K') }
  })
  const commit = (): string => hub.commit({ id: REPO, files: filesIn(source) })
  commit()
  hub.commit({ id: OTHER, files: [{ path: 'other-q4_k_m.gguf', content: weightsOf('Q4_K', 2) }] })
  const config = `[swarm]\nenabled = false\n\n[store]\nmax_bytes = ${QUOTA}\n\n[hub]\nendpoint = "${hub.endpoint}"\n`
  const daemon = await stage.daemon('home', config)

  stage.step('Look for a model at a hub that stands in for the one on the internet, and whether it fits')
  await daemon.svc('search', 'tiny', '--gguf')
  await daemon.svc('show', 'hf', REPO, '--context', '2048')
  const first = await sentDuring(hub, () => daemon.svc('import', 'hf', `${REPO}:q8_0`))
  stage.say(`  the hub sent ${first} bytes`)

  stage.step('A new commit: another chat template, the same weights')
  writeFileSync(join(source, 'chat_template.jinja'), '{{ messages }}\n')
  commit()
  await daemon.svc('outdated')
  const second = await sentDuring(hub, () => daemon.svc('upgrade', '--all'))
  stage.say(`  the newer version is here, and the hub sent ${second} bytes`)
  if (second * 10 > first) throw new Error('the weights travelled again')

  stage.step('A quota: for the next model the weights of the first go; its name and the rest stay')
  await daemon.svc('gc', '--older-than', '0')
  await daemon.svc('import', 'hf', `${OTHER}:q4_k_m`, '--evict')
  if (!(await daemon.svc('ls')).includes('away')) throw new Error('the model is not away')

  stage.step('Once there is room, whoever asks for its path has the same bytes again')
  await daemon.svc('rm', OTHER.toLowerCase())
  await daemon.svc('gc')
  const path = (await daemon.svc('path', REF)).trim().split('\n').at(-1)!
  const name = 'tiny-q8_0.gguf'
  if (!readFileSync(path).equals(readFileSync(join(source, name)))) throw new Error(`${path} is not what the hub has`)
  stage.say('  it comes back byte-identical')
  await daemon.stop()

  await readWhileFetched(stage)
}

const weightsOf = (type: GgufType, seed = 1): Buffer =>
  makeGguf({
    metadata: {
      'llama.context_length': 4096,
      'llama.embedding_length': 512,
      'llama.block_count': 2,
      'llama.attention.head_count': 8
    },
    tensors: [{ name: 'token_embd.weight', shape: [512, 8192], type }],
    seed
  })

const filesIn = (folder: string): { readonly path: string; readonly content: Buffer }[] =>
  ['config.json', 'chat_template.jinja', 'LICENSE', 'README.md', 'tiny-q8_0.gguf', 'tiny-q4_k_m.gguf'].map((path) => ({
    path,
    content: readFileSync(join(folder, path))
  }))

async function sentDuring({ bytesSent }: FakeHub, work: () => Promise<unknown>): Promise<number> {
  const sum = (): number => [...bytesSent.values()].reduce((all, bytes) => all + bytes, 0)
  const before = sum()
  await work()
  return sum() - before
}

/** A stock S3 client reads header and tensors from a machine that is still fetching the model from another one. */
async function readWhileFetched(stage: Stage): Promise<void> {
  stage.step(`A machine has a model, and gives ${LINK_BYTES_PER_SECOND / MIB} MiB/s; another one fetches it`)
  const swarm = '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nseed_on_import = true\n'
  const far = await stage.daemon('far', `${swarm}upload_limit = ${LINK_BYTES_PER_SECOND}\n`)
  const folder = join(stage.folder, 'large')
  mkdirSync(folder)
  const tensors = Array.from(
    { length: TENSORS },
    (_, at) => ({ name: `layers.${at}.weight`, dtype: 'BF16', shape: [2 * MIB] }) as const
  )
  const weights = makeSafetensors({ tensors })
  writeFileSync(join(folder, 'model.safetensors'), weights)
  writeFileSync(join(folder, 'config.json'), '{"model_type":"llama"}\n')
  await far.svc('import', 'local', folder, '--as', 'demo/large')
  const near = await stage.daemon('near', `${swarm}\n[mirror]\ns3_addr = "127.0.0.1:0"\n`)

  stage.step('Amazon’s own S3 client asks for it by name: it reads the header, then the tensors in their order')
  const args = ['--conditions=svc-source', '--disable-warning=ExperimentalWarning', CLIENT]
  const child = spawn(process.execPath, [...args, `http://${near.facts.s3MirrorAddress}`, 'demo/large/'], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  stage.later(async () => void child.kill())
  let here = async (): Promise<number> => 0
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) {
    last = line
    const isHeader = line.startsWith('header')
    stage.say(
      isHeader
        ? `  ${line}: ${(await here()) >> 20} of ${weights.length >> 20} MiB of the weights were here`
        : `  ${line}`
    )
    if (line.startsWith('nothing')) here = await begin(stage, far, near)
  }
  if (last !== createHash('sha256').update(weights).digest('hex')) throw new Error('the client read other bytes')
  stage.say('  all tensors are byte-identical')
  await near.svc('ls')
}

/** Starts the import that `svc share` names. @returns asks how many bytes have come */
async function begin(stage: Stage, far: DemoDaemon, near: DemoDaemon): Promise<() => Promise<number>> {
  const [giver, taker] = [far, near].map(({ folder }) => createClient({ socketPath: join(folder, 's.sock') }))
  for (const each of [giver, taker]) stage.later(async () => each!.close())
  let share = await giver!.share('svc:///demo/large:bf16')
  while (!share.announced) {
    await delay(100)
    share = await giver!.share('svc:///demo/large:bf16')
  }
  const { magnet, manifestDigest } = share
  const { id } = await taker!.importBt({ magnet, manifestDigest, manifestFromPeers: true, as: 'demo/large' })
  return async () => (await taker!.job(id)).bytesDone ?? 0
}
