import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { expect, it } from 'vitest'
import { testDaemon } from './support.ts'

function flip(path: string): void {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(path, bytes)
}

it('one damaged record: every command works for the rest, fsck and doctor exit with 5, and rm repairs it', async () => {
  const { folder, root, svc } = await testDaemon()
  for (const [name, ggufs] of Object.entries({
    hurt: { q8_0: 'Q8_0' },
    fine: { q4_0: 'Q4_0' },
    gone: { f16: 'F16' }
  } as const)) {
    makeModelFolder(join(folder, name), { ggufs, files: { 'model.safetensors': undefined } })
    expect((await svc('import', 'local', name, '--as', `acme/${name}`)).code).toBe(0)
  }
  const file = 'state/repos/acme/hurt.json'
  flip(join(root, file))
  const codes: Record<string, number | null> = {}
  const run = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await svc(...words)
    codes[words.join(' ')] = code
    return stdout + stderr
  }
  expect(await run('ls')).toContain(file)
  expect(await run('ls')).toContain('acme/fine:q4_0')
  expect(await run('status')).toContain(file)
  expect(await run('show', 'acme/hurt')).toContain(file)
  expect(await run('doctor')).toContain(file)
  expect(await run('fsck')).toContain(file)
  for (const words of ['du', 'show acme/fine', 'path acme/fine:q4_0', 'rm acme/gone', 'gc'])
    await run(...words.split(' '))
  expect(codes).toEqual({
    ls: 0,
    status: 0,
    'show acme/hurt': 5,
    doctor: 5,
    fsck: 5,
    du: 0,
    'show acme/fine': 0,
    'path acme/fine:q4_0': 0,
    'rm acme/gone': 0,
    gc: 0
  })
  expect((await svc('rm', 'acme/hurt')).code).toBe(0)
  expect((await svc('import', 'local', 'hurt', '--as', 'acme/hurt')).code).toBe(0)
  expect((await svc('fsck')).code).toBe(0)
})
