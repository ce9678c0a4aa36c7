import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeCatalog, startFakeCatalog } from '../../packages/testkit/src/fake-catalog.ts'
import { type FakeHub, type FakeRepoFile, startFakeHub } from '../../packages/testkit/src/fake-hub.ts'
import { makeLlamaGgufs } from '../../packages/testkit/src/llama-gguf.ts'
import { makeModelFolder, makeSafetensors } from '../../packages/testkit/src/models.ts'

/** The hub and the catalog that the pages' commands talk to, on loopback. */
export interface World {
  readonly hub: FakeHub
  readonly catalog: FakeCatalog
  close(): Promise<void>
}

const gguf = (path: string, seed: number): FakeRepoFile => ({
  path,
  content: makeLlamaGgufs({ seed })[0] as Buffer,
  lfs: true
})
const json = (path: string, value: unknown): FakeRepoFile => ({ path, content: Buffer.from(JSON.stringify(value)) })

/** Starts the world with every repository that a page names; what the files hold is small and valid. */
export async function startWorld(scratch: string): Promise<World> {
  const folder = join(scratch, 'upstream')
  makeModelFolder(folder, { ggufs: {}, files: { 'model.safetensors': undefined } })
  const sidecars = readdirSync(folder).map((path) => ({ path, content: readFileSync(join(folder, path)) }))
  const shards = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
  const layer = (i: number) => ({ name: `model.layers.${i}.weight`, dtype: 'BF16' as const, shape: [64, 64] })
  const hub = await startFakeHub({
    repos: [
      {
        id: 'acme/Model-7B-GGUF',
        files: ['Q2_K', 'Q3_K_M', 'Q4_K_M', 'Q5_K_M', 'Q6_K', 'Q8_0'].map((quant, i) =>
          gguf(`Model-7B-${quant}.gguf`, i + 1)
        )
      },
      {
        id: 'acme/split-gguf',
        files: makeLlamaGgufs({ shards: 2, seed: 11 }).map((content, i) => ({
          path: `Split-Q8_0-0000${i + 1}-of-00002.gguf`,
          content,
          lfs: true
        }))
      },
      { id: 'acme/vision-gguf', files: [gguf('Vision-Q4_K_M.gguf', 21), gguf('mmproj-F16.gguf', 22)] },
      {
        id: 'acme/Model-7B',
        files: [
          ...sidecars,
          ...shards.map((path, i) => ({ path, content: makeSafetensors({ tensors: [layer(i)], seed: i }), lfs: true })),
          json('model.safetensors.index.json', {
            metadata: { total_size: 2 * 64 * 64 * 2 },
            weight_map: { [layer(0).name]: shards[0], [layer(1).name]: shards[1] }
          })
        ]
      },
      {
        id: 'onnx-community/Model-ONNX',
        files: [
          json('config.json', { model_type: 'bert' }),
          { path: 'onnx/model.onnx', content: { seed: 51, sizeBytes: 100_000 }, lfs: true }
        ]
      },
      {
        id: 'acme/image-model',
        files: [
          {
            path: 'image-model.safetensors',
            content: makeSafetensors({ tensors: [{ name: 'unet.weight', dtype: 'F16', shape: [64, 64] }], seed: 31 }),
            lfs: true
          }
        ]
      }
    ]
  })
  const commit = hub.commit({ id: 'Qwen/Qwen3-0.6B-GGUF', files: [gguf('Qwen3-0.6B-Q8_0.gguf', 41)] })
  const catalog = await startFakeCatalog()
  // nobody seeds it, so that its bytes come from the webseed at once.
  const webseed = encodeURIComponent(`${hub.endpoint}/Qwen/Qwen3-0.6B-GGUF/resolve/${commit}`)
  const magnet = `magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=Qwen3-0.6B-Q8_0.gguf&ws=${webseed}`
  catalog.list([{ repo: 'Qwen/Qwen3-0.6B-GGUF', seeds: 0, magnet }])
  return { hub, catalog, close: async () => void (await Promise.all([hub.close(), catalog.close()])) }
}

/**
 * Makes the home folder of a machine: a configuration that stays on loopback, and `~/work`, the folder that commands start in,
 * which looks like a checkout and holds the models that pages take from disk.
 */
export function makeHome(home: string, root: string, world: World): void {
  for (const folder of ['.config/svc', 'run', 'work']) mkdirSync(join(home, folder), { recursive: true })
  chmodSync(join(home, 'run'), 0o700)
  writeFileSync(
    join(home, '.config/svc/config.toml'),
    `[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\n[catalog]\nendpoint = "${world.catalog.endpoint}"\n`
  )
  for (const name of readdirSync(root))
    if (!name.startsWith('.') && name !== 'node_modules') symlinkSync(join(root, name), join(home, 'work', name))
  makeModelFolder(join(home, 'work/my-model'), { name: 'my-model' })
  makeModelFolder(join(home, 'work/tiny'))
}
