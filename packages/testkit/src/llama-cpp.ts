import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

function hasPrebuilt(): boolean {
  try {
    const loader = require.resolve('node-llama-cpp')
    const platform = `${process.platform === 'darwin' ? 'mac' : process.platform}-${process.arch}`
    const name = platform === 'mac-arm64' ? '@node-llama-cpp/mac-arm64-metal' : `@node-llama-cpp/${platform}`
    // the package has no CommonJS entry, so look for it on disk, next to the loader.
    return existsSync(join(dirname(loader), '../..', name, 'package.json'))
  } catch {
    return false
  }
}

/** Whether llama.cpp is installed as a prebuilt binary for this platform. With SVC_REQUIRE_INTEROP=1 it must be. */
export const haveLlamaCpp = process.env.SVC_REQUIRE_INTEROP === '1' || hasPrebuilt()

/** The version of the package that carries llama.cpp. */
export function llamaCppVersion(): string {
  const { version } = JSON.parse(
    readFileSync(join(dirname(require.resolve('node-llama-cpp')), '../package.json'), 'utf8')
  )
  return version
}

/** Facts about a loaded model. */
export interface LoadedLlama {
  readonly sizeBytes: number
  readonly vocabularySize: number
  readonly tokens: readonly number[]
  /** The most probable token after the text. */
  readonly next: number
}

/** Started once: detecting the machine's capabilities takes seconds. */
let started: Promise<import('node-llama-cpp').Llama> | undefined

async function start(): Promise<import('node-llama-cpp').Llama> {
  const { getLlama, LlamaLogLevel } = await import('node-llama-cpp')
  return getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.disabled,
    // its threads spin while they wait: more than one only takes CPU from other tests.
    maxThreads: 1
  })
}

/** The probabilities of the next token after a text, with the adapter at `lora` if given. @throws llama.cpp's error */
export async function probableNext(path: string, lora?: string): Promise<ReadonlyMap<number, number>> {
  started ??= start()
  const model = await (await started).loadModel({ modelPath: path })
  try {
    const context = await model.createContext({ contextSize: 64, ...(lora !== undefined && { lora }) })
    const tokens = model.tokenize('hello world')
    const last = tokens.pop()!
    const results = await context
      .getSequence()
      .controlledEvaluate([...tokens, [last, { generateNext: { probabilities: true } }]])
    return new Map(results.at(-1)?.next.probabilities)
  } finally {
    await model.dispose()
  }
}

/** Loads a GGUF with llama.cpp on the CPU, evaluates a text, and unloads it. @throws llama.cpp's error */
export async function loadLlama(path: string, text = 'hello world'): Promise<LoadedLlama> {
  started ??= start()
  const model = await (await started).loadModel({ modelPath: path })
  try {
    const context = await model.createContext({ contextSize: 64 })
    const tokens = model.tokenize(text)
    const next = await context.getSequence().evaluate(tokens, { temperature: 0 }).next()
    return {
      sizeBytes: model.size,
      vocabularySize: model.fileInfo.metadata.tokenizer.ggml.tokens.length,
      tokens,
      next: Number(next.value ?? -1)
    }
  } finally {
    await model.dispose()
  }
}
