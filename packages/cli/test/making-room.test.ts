// Models are evicted for others only if their owner agrees.
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, it, onTestFinished, vi } from 'vitest'
import { testDaemon, typing } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })

const MIB = 1 << 20

it('an import without room is refused with the eviction candidates; a terminal asks, --evict proceeds', async () => {
  const files = (name: string, seed: number) => [{ path: `${name}-q8_0.gguf`, content: { seed, sizeBytes: 2 * MIB } }]
  const repos = ['first', 'second'].map((name, seed) => ({ id: `acme/${name}`, files: files(name, seed) }))
  const hub = await startFakeHub({ repos })
  onTestFinished(() => hub.close())
  const daemon = await testDaemon({
    fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint }, store: { max_bytes: 4 * MIB } }
  })
  const away = async (): Promise<string> =>
    (await daemon.svc('ls')).stdout
      .split('\n')
      .filter((line) => / away /.test(line))
      .map((line) => line.split(' ')[0])
      .join()
  await daemon.svc('import', 'hf', 'acme/first', '--force')
  const second = ['import', 'hf', 'acme/second', '--force']
  const refused = await daemon.svc(...second, '--json', '--quiet')
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'E_NO_SPACE', candidates: ['acme/first:q8_0'] } })
  const asked = await daemon.svcWith(second, { columns: 100, stdin: typing('n') })
  expect(asked.stderr).toContain('Evict acme/first:q8_0?')
  expect([asked.code, await away()]).toEqual([refused.code, ''])
  expect(await daemon.svcWith(second, { columns: 100, stdin: typing('y') })).toMatchObject({ code: 0 })
  expect(await away()).toBe('acme/first:q8_0')
  const shown = (await daemon.svc('show', 'acme/first')).stdout
  expect(shown).toMatch(/missing 1 file, 2\.0 MiB; fetch with: svc pull acme\/first:q8_0\n +first-q8_0\.gguf/)

  // svc path asks as well, although it has no such option
  const path = await daemon.svc('path', 'acme/first')
  expect(path.code).toBe(refused.code)
  expect(path.stderr).toContain('svc pull acme/first:q8_0 --evict')
  expect(await daemon.svcWith(['path', 'acme/first'], { columns: 100, stdin: typing('y') })).toMatchObject({ code: 0 })
  expect(await away()).toBe('acme/second:q8_0')
  expect(await daemon.svc('pull', 'acme/second', '--evict')).toMatchObject({ code: 0 })
  expect(await away()).toBe('acme/first:q8_0')
})
