import { spawn } from 'node:child_process'

/** What a plain program took for the work that cannot be left out. */
export interface BoundResult {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Of the second time, where a program does it twice. */
  readonly againSeconds?: number
  /** Of an event loop that had nothing to do, in milliseconds. */
  readonly p50Ms?: number
  readonly p99Ms?: number
  readonly maxMs?: number
}

/** Runs `bench/bounds/NAME-process.ts`, which prints its result. @throws Error when it fails */
export function runBound(name: string, args: readonly string[]): Promise<BoundResult> {
  const path = new URL(`../bounds/${name}-process.ts`, import.meta.url).pathname
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(printed) as BoundResult)
      else reject(new Error(`${name}: exit code ${code}`))
    })
  })
}
