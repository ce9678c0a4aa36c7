import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Outcome } from './history.ts'

/** In memory where that is possible: nobody cuts the power here. */
export const BASE: string = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export type SeededOutcome = Outcome & { readonly seed: number }

export interface Histories {
  readonly seeds: readonly number[]
  readonly steps: number
  /** The `main.ts` to run; default: that of this folder. */
  readonly main?: string
}

/** Runs histories in a process, until one of them leaks. @throws Error with its output when it fails otherwise */
export function histories({
  seeds,
  steps,
  main = fileURLToPath(new URL('main.ts', import.meta.url))
}: Histories): Promise<readonly SeededOutcome[]> {
  return new Promise((resolve, reject) => {
    const words = ['--conditions=svc-source', main, BASE, String(steps), ...seeds.map(String)]
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.on('error', reject)
    child.on('close', (code) => {
      if (code !== 0) return reject(new Error(`histories ${seeds.join(' ')} ended with ${code}: ${stderr}`))
      resolve(
        stdout
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as SeededOutcome)
      )
    })
  })
}
