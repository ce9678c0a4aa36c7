import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PYTHON } from './python-loaders.ts'

const require = createRequire(import.meta.url)

/** The library of llama.cpp that its programs share, with the code behind `-hf`; it comes with the prebuilt binaries for Linux on x64. */
const LIBRARY = ((): string | undefined => {
  // the call from Python follows this platform's rule for a result that is an object
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  try {
    const bins = join(dirname(require.resolve('node-llama-cpp')), '../../@node-llama-cpp/linux-x64/bins/linux-x64')
    return [join(bins, 'libllama-common.so')].find((path) => existsSync(path))
  } catch {
    return undefined
  }
})()

/** What is needed for {@link resolveHf} and is not here; empty where all is. */
export const missingForHf: readonly string[] = [
  ...(LIBRARY === undefined ? ["llama.cpp's shared code (Linux on x64)"] : []),
  ...(spawnSync(PYTHON, ['-c', 'import ctypes']).status === 0 ? [] : ['Python'])
]

/**
 * Where llama.cpp finds `org/name:QUANT` in the cache at `cache` without a network, by the code that runs for `-hf … --offline`: a path for
 * each reference, or an empty string.
 */
export async function resolveHf(refs: readonly string[], cache: string): Promise<string[]> {
  const script = fileURLToPath(new URL('./llama_hf.py', import.meta.url))
  const { LLAMA_CACHE: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(PYTHON, [script, LIBRARY!, ...refs], {
    env: { ...env, HF_HUB_CACHE: cache }
  })
  return stdout.split('\n').slice(0, refs.length)
}
