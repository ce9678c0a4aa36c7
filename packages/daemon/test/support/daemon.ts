import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isTerminal, type Job } from '@svc/client/protocol'
import { until } from '@svc/testkit/until'
import { afterAll, onTestFinished } from 'vitest'
import { type InspectedDaemon, type InspectedOptions, startInspected } from '../../src/app/daemon.ts'

/** In memory where that is possible: these tests sync hundreds of files, and none of them cuts the power. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  // what the API says is checked field by field in the tests
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly body: any
}

export type CleanUp = (work: () => void | Promise<void>) => void

/** A folder of this test, removed when it ends. */
export function temporaryFolder(cleanUp: CleanUp = onTestFinished): string {
  const folder = mkdtempSync(join(BASE, 'svcd-'))
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export class ApiClient {
  readonly socketPath: string
  readonly agent = new Agent({ keepAlive: true })

  constructor(socketPath: string) {
    this.socketPath = socketPath
  }

  call(
    method: string,
    path: string,
    options: { body?: unknown; raw?: string | Buffer; headers?: Record<string, string> } = {}
  ): Promise<Answer> {
    const payload = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
    // Node frames the body of a DELETE only when it is told how
    const length = payload === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(payload)) }
    return new Promise((resolve, reject) => {
      const headers = { Host: 'svc', ...length, ...options.headers }
      const call = request({ socketPath: this.socketPath, method, path, agent: this.agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          const json = response.headers['content-type']?.startsWith('application/json') === true && bytes.length > 0
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            bytes,
            body: json ? JSON.parse(bytes.toString('utf8')) : undefined
          })
        })
      })
      call.on('error', reject)
      call.end(payload)
    })
  }

  get(path: string, headers?: Record<string, string>): Promise<Answer> {
    return this.call('GET', path, headers === undefined ? {} : { headers })
  }

  post(path: string, body: unknown): Promise<Answer> {
    return this.call('POST', path, { body })
  }

  resolve(ref: string): Promise<Answer> {
    return this.get(`/v1/resolve?ref=${encodeURIComponent(ref)}`)
  }

  open(ref: string): Promise<Answer> {
    return this.get(`/v1/open?ref=${encodeURIComponent(ref)}`)
  }

  /** The job's last snapshot. */
  async finished({ id }: { readonly id: string }): Promise<Job> {
    const look = async (): Promise<Job> => {
      const { status, body } = await this.get(`/v1/jobs/${id}`)
      if (status !== 200) throw new Error(`job ${id}: ${status}`)
      return body
    }
    let job = await look()
    await until(
      () => isTerminal(job),
      async () => {
        job = await look()
      }
    )
    return job
  }

  async import(paths: readonly string[], as = 'me/model'): Promise<Job> {
    const { status, body } = await this.post('/v1/import/local', { paths, as })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return this.finished(body)
  }

  async verify(target: string): Promise<Job> {
    const { status, body } = await this.post('/v1/verify', { target })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return this.finished(body)
  }
}

export interface TestDaemon extends ApiClient {
  readonly folder: string
  readonly root: string
  readonly running: InspectedDaemon
}

/** A daemon in this process with a store of its own, without swarm, hub and catalog; stopped when the test ends. */
export async function testDaemon(
  options: Partial<InspectedOptions> & { folder?: string } = {},
  cleanUp: CleanUp = onTestFinished
): Promise<TestDaemon> {
  const { folder = temporaryFolder(cleanUp), ...more } = options
  const root = join(folder, 'root')
  const running = await startInspected({
    hashThreads: 1,
    root,
    socketPath: join(folder, 's.sock'),
    fileConfig: { swarm: { enabled: false } },
    networks: {},
    ...more
  })
  const client = new ApiClient(running.socketPath)
  cleanUp(async () => {
    client.agent.destroy()
    await running.close({ quick: true })
  })
  return Object.assign(client, { folder, root, running })
}

/** One value for all tests of a file that only read it; made when it is first asked for, let go after the last test. */
export function sharedByFile<T>(make: (cleanUp: CleanUp) => Promise<T>): () => Promise<T> {
  const cleanUps: (() => void | Promise<void>)[] = []
  let made: Promise<T> | undefined
  afterAll(async () => {
    for (const work of cleanUps.reverse()) await work()
  })
  return () => (made ??= make((work) => void cleanUps.push(work)))
}
