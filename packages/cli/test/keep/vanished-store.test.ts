// What users see if the disk of the store is gone.
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { expect, it } from 'vitest'
import { testDaemon } from '../support.ts'

it('every command that needs the store fails and says what is at its path', async () => {
  const daemon = await testDaemon()
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  expect(await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny', '--quiet')).toMatchObject({ code: 0 })
  renameSync(daemon.root, join(daemon.folder, 'away'))
  mkdirSync(daemon.root, { mode: 0o700 })
  const ref = 'acme/tiny:q8_0'
  const commands = [
    ['ls'],
    ['du'],
    ['status'],
    ['fsck'],
    ['verify', ref],
    ['gc'],
    ['show', ref],
    ['path', ref],
    ['resolve', ref],
    ['cat', ref],
    ['pull', ref],
    ['rm', ref],
    ['view'],
    ['backup', join(daemon.folder, 'saved')],
    ['import', 'local', 'Tiny', '--as', 'acme/again', '--quiet']
  ]
  for (const words of commands) {
    const ran = await daemon.svc(...words, '--json')
    expect(ran, words.join(' ')).toMatchObject({ code: 1 })
    expect(JSON.parse(ran.stderr.trim().split('\n').at(-1)!).error, words.join(' ')).toMatchObject({
      code: 'E_INTERNAL',
      message: expect.stringContaining('empty folder')
    })
  }
  const doctor = await daemon.svc('doctor', '--json')
  expect(doctor).toMatchObject({ code: 1 })
  const bad = JSON.parse(doctor.stdout).findings.filter(({ level }: { level: string }) => level === 'bad')
  expect(JSON.stringify(bad)).toContain('empty folder')
})
