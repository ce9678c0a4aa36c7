import { expect, test } from 'vitest'
import { namesHere } from '../src/index.ts'

const HERE = [
  'tiny-q8_0.gguf',
  'mmproj-eyes-f16.gguf',
  'mtp-head-q4_k_m.gguf',
  'b/set-bf16-00001-of-00002.gguf',
  'Kept.gguf',
  'config.json'
]

test.each([
  ['Tiny.gguf', 'tiny-q8_0.gguf'],
  ['Eyes-F16.gguf', 'mmproj-eyes-f16.gguf'],
  ['Head.gguf', 'mtp-head-q4_k_m.gguf'],
  // the other part is not here: its name is the one that it would have
  ['b/Set-00001-of-00002.gguf', 'b/set-bf16-00001-of-00002.gguf'],
  ['b/Set-00002-of-00002.gguf', 'b/set-bf16-00002-of-00002.gguf'],
  ['Kept.gguf', 'kept.gguf'],
  ['Other.Q4_0.gguf', 'other-q4_0.gguf'],
  // no header gives a file a quant that its name denies, or another folder
  ['Tiny-Q4_0.gguf', 'tiny-q4_0.gguf'],
  ['a/Tiny.gguf', 'a/tiny.gguf'],
  ['config.json', 'config.json'],
  ['Config.json', 'Config.json']
])('%s is here as %s', (upstream, name) => {
  const signed = ['Tiny.gguf', 'Eyes-F16.gguf', 'Head.gguf', 'b/Set-00001-of-00002.gguf', 'b/Set-00002-of-00002.gguf']
  expect(namesHere([...new Set([...signed, upstream])], HERE)(upstream)).toBe(name)
})

test('a long list takes steps by its length', () => {
  const signed = Array.from({ length: 20_000 }, (_, at) => `Model-${at}.gguf`)
  const here = Array.from({ length: 20_000 }, (_, at) => `other-${at}-q${at % 9}_k_m.gguf`)
  expect(namesHere(signed, here)('Model-7.gguf')).toBe('model-7.gguf')
})
