import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { type Client, isTerminal, type Job, type Status } from '@svc/client'
import type { Clock } from '@svc/internal-clock'

const MAX_STREAMS = 16
/** What a page may leave unread; a page that reads nothing is disconnected, and comes back by itself. */
const MAX_UNREAD_BYTES = 32 * 1024 * 1024
const LOOK_MS = 1_000
const STATUS_MS = 2_000
const INVENTORY_MS = 20_000
const KEEP_ALIVE_MS = 15_000
/** After this time without an answer, the daemon counts as away: one that hangs keeps its socket. */
const LATE_MS = 20_000
/** The largest share of the time that the daemon spends on one kind of answer: those of large stores take long. */
const SHARE = 1 / 20

/** Something that is looked at from time to time. */
class PeriodicLook {
  readonly #periodMs: number
  #nextMs = 0

  constructor(periodMs: number) {
    this.#periodMs = periodMs
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#nextMs
  }

  done(begunMs: number, nowMs: number): void {
    this.#nextMs = Math.max(begunMs + this.#periodMs, nowMs + (nowMs - begunMs) / SHARE)
  }

  soon(): void {
    this.#nextMs = 0
  }
}

/** Tells open pages what changes at the daemon, as server-sent events; asks it nothing while no page is open. */
export class LiveFeed {
  readonly #client: Client
  readonly #clock: Clock
  readonly #streams = new Set<ServerResponse>()
  readonly #closing = new AbortController()
  readonly #turns = {
    status: new PeriodicLook(STATUS_MS),
    inventory: new PeriodicLook(INVENTORY_MS),
    keepAlive: new PeriodicLook(KEEP_ALIVE_MS)
  }
  #isLooking = false
  /** The last event of each kind, for pages that open later. */
  #daemon: string | undefined
  #status: string | undefined
  #inventory: string | undefined
  /** Undefined until they were told. */
  #jobs: ReadonlyMap<string, string> | undefined
  /** Which run of the daemon answers; undefined while none does. */
  #run: string | undefined

  constructor(client: Client, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  get hasRoom(): boolean {
    return this.#streams.size < MAX_STREAMS
  }

  /** Takes a response whose head was sent. */
  attach(response: ServerResponse): void {
    response.on('close', () => this.#streams.delete(response))
    response.write('retry: 1000\n\n')
    this.#streams.add(response)
    if (this.#isLooking) {
      for (const event of [this.#daemon, this.#status]) if (event !== undefined) response.write(event)
      if (this.#jobs !== undefined) response.write(jobsEvent([...this.#jobs.values()], []))
    } else void this.#lookOn()
  }

  /** To be called after a change. */
  lookSoon(): void {
    this.#turns.inventory.soon()
    this.#turns.status.soon()
  }

  close(): void {
    this.#closing.abort()
    for (const response of this.#streams) response.end()
  }

  async #lookOn(): Promise<void> {
    const { signal } = this.#closing
    this.#isLooking = true
    this.#forget()
    while (this.#streams.size > 0 && !signal.aborted) {
      try {
        await this.#look()
      } catch (error) {
        if (!signal.aborted) this.#away(error)
      }
      await this.#clock.sleep(LOOK_MS, signal).catch(() => undefined)
    }
    this.#isLooking = false
  }

  async #look(): Promise<void> {
    const call = { signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(LATE_MS)]) }
    // first: pages that hear that the daemon is up read the inventory, and hear of changes after this one
    await this.#inTurn('inventory', async () => {
      const inventory = createHash('sha256')
        .update(JSON.stringify(await this.#client.models(call)))
        .digest('hex')
      if (this.#inventory !== undefined && this.#inventory !== inventory) this.#tell(event('models', '{}'))
      this.#inventory = inventory
    })
    await this.#inTurn('status', async () => this.#tellStatus(await this.#client.status(call)))
    if (this.#tellJobs(await this.#client.jobs(call))) this.#turns.inventory.soon()
    await this.#inTurn('keepAlive', () => this.#tell(':\n\n'))
  }

  async #inTurn(name: 'status' | 'inventory' | 'keepAlive', work: () => Promise<void> | void): Promise<void> {
    const begun = this.#clock.monotonic()
    if (!this.#turns[name].isDue(begun)) return
    await work()
    this.#turns[name].done(begun, this.#clock.monotonic())
  }

  #tellStatus(status: Status): void {
    const run = `${status.pid} ${status.startedAt}`
    if (run !== this.#run) {
      this.#forget()
      this.#run = run
      const { pid, version } = status
      this.#daemon = event('daemon', JSON.stringify({ state: 'up', version, pid }))
      this.#tell(this.#daemon)
    }
    const said = event('status', JSON.stringify(status))
    if (said !== this.#status) this.#tell(said)
    this.#status = said
    // by these, pages measure rates even of jobs that stand still
    this.#tell(event('look', '{}'))
  }

  /** @returns whether a job has ended that may have changed the inventory */
  #tellJobs(jobs: readonly Job[]): boolean {
    const before = this.#jobs
    const now = new Map(jobs.map((job) => [job.id, JSON.stringify(job)]))
    const changed = jobs.filter(({ id }) => before?.get(id) !== now.get(id))
    const gone = [...(before?.keys() ?? [])].filter((id) => !now.has(id))
    this.#jobs = now
    // the first list is sent even if it is empty: pages may have jobs of an earlier daemon
    if (before === undefined || changed.length + gone.length > 0)
      this.#tell(
        jobsEvent(
          changed.map(({ id }) => now.get(id)!),
          gone
        )
      )
    return changed.some((job) => isTerminal(job) && job.dryRun !== true)
  }

  #away(error: unknown): void {
    this.#forget()
    this.lookSoon()
    const message = error instanceof Error ? error.message : String(error)
    const said = event('daemon', JSON.stringify({ state: 'away', message }))
    if (said !== this.#daemon) this.#tell(said)
    this.#daemon = said
  }

  /** Pages then hear of the daemon from the start. */
  #forget(): void {
    this.#run = undefined
    this.#status = undefined
    this.#jobs = undefined
  }

  #tell(text: string): void {
    for (const response of this.#streams) {
      response.write(text)
      if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
    }
  }
}

const event = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`
const jobsEvent = (jobs: readonly string[], gone: readonly string[]): string =>
  event('jobs', `{"jobs":[${jobs.join(',')}],"gone":${JSON.stringify(gone)}}`)
