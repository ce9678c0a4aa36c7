import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The Python interpreter to use. */
export const PYTHON = process.env.SVC_PYTHON ?? 'python3'

/** The script that shows what the hub's Python client makes of a hub: see there. */
export const HUB_CLIENT: string = fileURLToPath(new URL('./hub_client.py', import.meta.url))

/** Interpreters that have the hub's Python client, by its version; transformers takes only the one before the newest. */
export const HUB_PYTHONS: readonly { readonly python: string; readonly version: string }[] = [
  ...new Set([PYTHON, process.env.SVC_PYTHON_TOOLS ?? PYTHON])
].flatMap((python) => {
  const { status, stdout } = spawnSync(python, ['-c', 'import huggingface_hub as h; print(h.__version__)'], {
    encoding: 'utf8'
  })
  return status === 0 ? [{ python, version: stdout.trim() }] : []
})

const MODULES = ['torch', 'transformers', 'tokenizers', 'safetensors', 'peft', 'gguf', 'huggingface_hub']

/** Which of these Python packages are not installed. */
export function missing(modules: readonly string[]): readonly string[] {
  const look = 'import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])'
  const { status, stdout } = spawnSync(PYTHON, ['-c', look, ...modules], { encoding: 'utf8' })
  return status === 0 ? stdout.split(/\s+/).filter((name) => name !== '') : modules
}

/** The missing Python packages, which a skipped test names. */
export const missingModules: readonly string[] = missing(MODULES)

/** The same for the script of {@link ROWS}; none where an interpreter was given for tests that must not skip. */
export const missingForRows = (): readonly string[] =>
  process.env.SVC_REQUIRE_INTEROP === '1' && process.env.SVC_PYTHON !== undefined
    ? []
    : missing([...MODULES, 'sentence_transformers', 'PIL'])

/** The script that writes and loads a model of each kind: see there. */
export const ROWS = 'loader_rows.py'

/** Python's loaders in their own process, started once: importing them takes seconds. */
export interface PythonLoaders {
  /** @throws Error with what the loader threw */
  ask<T>(work: string, ...args: readonly unknown[]): Promise<T>
  close(): void
}

/** @param env added to that of this process */
export function startPythonLoaders(env: Readonly<Record<string, string>> = {}, name = 'loaders.py'): PythonLoaders {
  const script = fileURLToPath(new URL(`./${name}`, import.meta.url))
  const child = spawn(PYTHON, [script], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
  return {
    async ask<T>(work: string, ...args: readonly unknown[]): Promise<T> {
      child.stdin.write(`${JSON.stringify([work, ...args])}\n`)
      const { value, done } = await answers.next()
      if (done === true) throw new Error(`the loaders ended: ${complaint}`)
      const answer = JSON.parse(value) as { value: T } | { error: string }
      if ('error' in answer) throw new Error(answer.error)
      return answer.value
    },
    close: () => void child.kill()
  }
}
