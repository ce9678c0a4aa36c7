import { fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** Whether a llama.cpp with vision support is installed for this platform. With SVC_REQUIRE_INTEROP=1 it must be. */
export const haveLlamaVision = ((): boolean => {
  if (process.env.SVC_REQUIRE_INTEROP === '1') return true
  try {
    const loader = createRequire(createRequire(import.meta.url).resolve('@fugood/llama.node'))
    return loader.resolve(`@fugood/node-llama-${process.platform}-${process.arch}`) !== ''
  } catch {
    return false
  }
})()

/** The result of evaluating a prompt with a picture. */
export interface Seen {
  readonly vision: boolean
  /** Number of evaluated tokens: those of the text, and those that the projector makes from the picture. */
  readonly withPicture: number
  readonly without: number
}

/** Loads a model and its projector with llama.cpp, and evaluates a picture. @throws Error with its last output */
export function seePicture(model: string, projector: string, picture: string): Promise<Seen> {
  const child = fork(fileURLToPath(new URL('./llama-vision-child.ts', import.meta.url)), [model, projector, picture], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc']
  })
  let words = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-2000)))
  return new Promise((done, failed) => {
    child.on('message', (seen) => done(seen as Seen))
    child.on('error', failed)
    child.on('close', (code) => failed(new Error(`llama.cpp ended with ${code}: ${words}`)))
  })
}
