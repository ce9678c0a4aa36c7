import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FileConfig } from '@svc/daemon'
import { makeModelFolder } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { manifestOf, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })

async function withTiny(fileConfig: FileConfig = {}): Promise<TestDaemon> {
  const daemon = await testDaemon({ fileConfig })
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  await ok(daemon, 'import', 'local', 'Tiny', '--as', 'acme/tiny', '--companions', 'all')
  return daemon
}

const ids = async (daemon: TestDaemon): Promise<string[]> => (await ok(daemon, 'ls', '--format', 'ids')).split('\n')

it('svc mv renames a model with its tags, into another namespace too; files stay', async () => {
  const daemon = await withTiny()
  const [before, path] = [await manifestOf(daemon, 'acme/tiny:q8_0'), await ok(daemon, 'path', 'acme/tiny:q8_0')]
  const shown = JSON.parse(await ok(daemon, 'show', 'acme/tiny:q8_0', '--json'))
  await ok(daemon, 'tag', 'acme/tiny', 'stable')

  expect(await ok(daemon, 'mv', 'Acme/Tiny', 'me/small')).toBe('me/small:bf16\nme/small:q8_0')
  expect(await ids(daemon)).toEqual(['me/small:bf16', 'me/small:q8_0'])
  expect(await manifestOf(daemon, 'me/small:stable+q8_0')).toBe(before)
  expect(await ok(daemon, 'path', 'me/small:q8_0')).toBe(path)
  expect(existsSync(path)).toBe(true)
  expect(JSON.parse(await ok(daemon, 'show', 'me/small:q8_0', '--json')).companions).toEqual(shown.companions)
  expect(await daemon.svc('show', 'acme/tiny:q8_0')).toMatchObject({ code: 3 })
  expect((await ok(daemon, 'tag', '--ls')).split(' ')[0]).toBe('me/small:stable')

  // a lone name stays in its namespace; one quant moves without the tags
  expect(await ok(daemon, 'mv', 'me/small:q8', 'large')).toBe('me/large:q8_0')
  expect(await ids(daemon)).toEqual(['me/large:q8_0', 'me/small:bf16'])
  expect(await manifestOf(daemon, 'me/small:stable+q8_0')).toBe(before)
})

it('svc cp gives a second name, and each can be removed', async () => {
  const daemon = await withTiny()
  expect(await ok(daemon, 'cp', 'acme/tiny:q8_0', 'me/copy:Q8_0')).toBe('me/copy:q8_0')
  expect(await manifestOf(daemon, 'me/copy')).toBe(await manifestOf(daemon, 'acme/tiny:q8_0'))
  await ok(daemon, 'rm', 'acme/tiny')
  await ok(daemon, 'gc')
  expect(await daemon.svc('verify', 'me/copy')).toMatchObject({ code: 0 })
  expect(existsSync(await ok(daemon, 'path', 'me/copy'))).toBe(true)
})

it('a rule that requires a signature holds for a new name as for an import under it', async () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const folder = mkdtempSync(join(tmpdir(), 'svc-rename-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const key = join(folder, 'key.pub')
  writeFileSync(key, publicKey.export({ type: 'spki', format: 'pem' }))
  const daemon = await withTiny({ trust: [{ names: ['nvidia/*'], mode: 'require', keys: [key] }] })
  for (const command of ['mv', 'cp']) {
    const refused = await daemon.svc(command, 'acme/tiny', 'nvidia/tiny')
    expect(refused).toMatchObject({ stdout: '' })
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('it is not signed')
    expect(await ids(daemon)).toEqual(['acme/tiny:bf16', 'acme/tiny:q8_0'])
  }
})

it('a name that another model has is not taken unasked', async () => {
  const daemon = await withTiny()
  makeModelFolder(join(daemon.folder, 'Other'), { ggufs: { q8_0: 'Q4_0' }, seed: 9 })
  await ok(daemon, 'import', 'local', 'Other', '--as', 'me/other')
  const other = await manifestOf(daemon, 'me/other:q8_0')
  const refused = await daemon.svc('mv', 'acme/tiny', 'me/other')
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toContain('me/other:q8_0')
  expect(await manifestOf(daemon, 'me/other:q8_0')).toBe(other)
  expect(await ids(daemon)).toContain('acme/tiny:q8_0')

  await ok(daemon, 'mv', 'acme/tiny', 'me/other', '--replace')
  expect(await manifestOf(daemon, 'me/other:q8_0')).not.toBe(other)
  for (const [from, to, code] of [
    ['me/none', 'me/new', 3],
    ['me/other', 'me/other', 2],
    ['me/other', 'library/new', 2],
    ['me/other:q8_0', 'me/new:q4_0', 2],
    ['me/other:q4_k_m', 'me/new', 3]
  ] as const)
    expect([from, to, (await daemon.svc('cp', from, to)).code]).toEqual([from, to, code])
})
