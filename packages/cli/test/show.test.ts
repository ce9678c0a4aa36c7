// What `svc show` says of a model.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { ok, testDaemon } from './support.ts'

test('svc show has licence, architecture, context and template', async () => {
  const daemon = await testDaemon()
  const folder = join(daemon.folder, 'tiny')
  mkdirSync(folder)
  const metadata = { 'general.architecture': 'qwen3', 'qwen3.context_length': 40_960 }
  writeFileSync(join(folder, 'tiny-q8_0.gguf'), makeGguf({ metadata }))
  writeFileSync(join(folder, 'chat_template.jinja'), '{{ messages }}')
  writeFileSync(join(folder, 'LICENSE'), 'all rights reserved\n')
  await ok(daemon, 'import', 'local', folder, '--as', 'acme/tiny')
  const shown = await ok(daemon, 'show', 'acme/tiny')
  expect(shown).toMatch(/^ +architecture +qwen3$/m)
  expect(shown).toMatch(/^ +context +40960 tokens$/m)
  expect(shown).toMatch(/^ +template +chat_template\.jinja$/m)
  expect(shown).toMatch(/^ +license +\S/m)
})
