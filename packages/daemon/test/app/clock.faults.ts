import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

const LIBRARY = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path))

test.skipIf(LIBRARY === undefined && process.env.SVC_REQUIRE_INTEROP !== '1').each(['+365d', '-365d'])(
  'a wall clock that is off by %s at the start, or jumps later, loses no data and stops no work',
  async (offset) => {
    const folder = temporaryFolder()
    const content = gguf(12_000_000, 5)
    const hub = await startFakeHub({ repos: [{ id: 'Org/Model', files: [{ path: 'm-q8_0.gguf', content }] }] })
    onTestFinished(() => hub.close())
    const clock = join(folder, 'clock')
    const set = (to: string): void => writeFileSync(clock, to)
    const start = (): Promise<SpawnedDaemon> =>
      spawnDaemon({
        folder,
        env: {
          HF_ENDPOINT: hub.endpoint,
          LD_PRELOAD: LIBRARY!,
          FAKETIME_TIMESTAMP_FILE: clock,
          FAKETIME_NO_CACHE: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1'
        }
      })
    const stop = async (daemon: SpawnedDaemon): Promise<void> => {
      daemon.agent.destroy()
      daemon.child.kill('SIGKILL')
      await daemon.ended
    }
    set('+0')
    const first = await start()
    const model = writeFiles(join(folder, 'm'), { 'm-q4_0.gguf': gguf(50_000, 1) })
    expect((await first.import([model], 'a/b')).state).toBe('done')
    // a download that is cut, with something of it on the disk.
    hub.setFaults(() => ({ kind: 'stall', afterBytes: 6_000_000 }) as never)
    await first.post('/v1/import/hf', { repo: 'Org/Model' })
    // without what a journal is written to before it gets its name: the kill may leave one, which a start removes.
    const journals = (): string[] => readdirSync(join(folder, 'root/incoming')).filter((name) => !name.endsWith('.tmp'))
    while (journals().length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    await stop(first)
    hub.setFaults(undefined)
    const left = journals()
    expect(left.length).toBeGreaterThan(0)

    set(offset)
    const second = await start()
    const skewMs = Math.abs(Date.parse((await second.get('/v1/status')).body.startedAt ?? new Date(0)) - Date.now())
    expect(skewMs).toBeGreaterThan(300 * 86_400_000)
    expect(journals()).toEqual(left)
    expect((await second.open('svc:///a/b:q4_0')).body.missing).toBe(undefined)
    // it jumps back and forth under a job.
    const { body: job } = await second.post('/v1/import/hf', { repo: 'Org/Model' })
    for (const to of ['+0', offset, '+0']) {
      set(to)
      expect((await second.resolve('svc:///a/b:q4_0')).status).toBe(200)
    }
    expect((await second.finished(job)).state).toBe('done')
    expect(hub.bytesSent.get('m-q8_0.gguf')).toBeLessThan(content.length * 2)
    set(offset)
    const { body: collected } = await second.post('/v1/gc', {})
    expect((await second.finished(collected)).state).toBe('done')
    expect((await second.import([model], 'c/d')).state).toBe('done')
    for (const ref of ['a/b:q4_0', 'c/d:q4_0', 'org/model:q8_0'])
      expect((await second.open(`svc:///${ref}`)).body.missing).toBe(undefined)
    expect((await second.verify('all')).verify).toEqual({})
    expect(second.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
    await stop(second)
  }
)
