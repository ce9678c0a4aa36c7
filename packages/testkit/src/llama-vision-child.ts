// llama.cpp with a projector, for llama-vision.ts. In its own process, since the addon writes to stdout.
import { createRequire } from 'node:module'

interface Context {
  initMultimodal(options: { path: string; use_gpu: boolean }): Promise<boolean>
  getMultimodalSupport(): Promise<{ vision: boolean }>
  completion(options: object): Promise<{ tokens_evaluated: number }>
  tokenize(text: string): Promise<{ tokens: ArrayLike<number> }>
  release(): Promise<void>
}
// Its types are source files that do not compile under our rules.
const { loadModel } = createRequire(import.meta.url)('@fugood/llama.node') as {
  loadModel(options: object): Promise<Context>
}

const [model, projector, picture] = process.argv.slice(2) as [string, string, string]

const context = await loadModel({ model, n_ctx: 128, n_gpu_layers: 0 })
await context.initMultimodal({ path: projector, use_gpu: false })
const { vision } = await context.getMultimodalSupport()
const without = (await context.tokenize(' hello')).tokens.length
const prompt = { prompt: '<__media__> hello', media_paths: [picture], n_predict: 1, temperature: 0 }
const { tokens_evaluated: withPicture } = await context.completion(prompt)
const seen = { vision, withPicture, without }
await context.release()
process.send!(seen, () => process.exit(0))
