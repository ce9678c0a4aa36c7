// What `svc show` says of a model.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeGguf, makeModelFolder, tinyTensors } from '@svc/testkit/models'
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

test('svc show counts parameters, and finds the template in a GGUF', async () => {
  const daemon = await testDaemon()
  const tensors = tinyTensors('Q8_0')
  const numbers = tensors.reduce((sum, { shape }) => sum + shape.reduce((product, n) => product * n, 1), 0)
  const metadata = { 'general.architecture': 'qwen3', 'tokenizer.chat_template': '{{ messages }} '.repeat(100) }
  writeFileSync(join(daemon.folder, 'tiny-q8_0.gguf'), makeGguf({ metadata, tensors }))
  await ok(daemon, 'import', 'local', 'tiny-q8_0.gguf', '--as', 'acme/tiny')
  const shown = await ok(daemon, 'show', 'acme/tiny')
  expect(shown).toMatch(new RegExp(`^ +parameters +${(numbers / 1e6).toFixed(1)}M$`, 'm'))
  expect(shown).toMatch(/^ +template +in tiny-q8_0\.gguf$/m)

  makeModelFolder(join(daemon.folder, 'folder'), { ggufs: {} })
  await ok(daemon, 'import', 'local', 'folder', '--as', 'acme/folder')
  expect(await ok(daemon, 'show', 'acme/folder')).toMatch(/^ +parameters +[\d.]+[KM]$/m)
})
