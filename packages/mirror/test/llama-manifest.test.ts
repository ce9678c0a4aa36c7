import { expect, test } from 'vitest'
import { filesOfTag } from '../src/llama-manifest.ts'

const PATHS = [
  'BF16/M-BF16-00001-of-00002.gguf',
  'BF16/M-BF16-00002-of-00002.gguf',
  'M-UD-Q4_K_XL.gguf',
  'M-Q4_K_M.gguf',
  'M-Q8_0.gguf',
  'M-imatrix.gguf',
  'MTP/mtp-M-Q8_0.gguf',
  'README.md',
  'mmproj-BF16.gguf',
  'mmproj-F16.gguf'
]

test.each([
  ['latest', 'M-Q4_K_M.gguf'],
  ['Q8_0', 'M-Q8_0.gguf'],
  ['q8_0', 'M-Q8_0.gguf'],
  ['bf16', 'BF16/M-BF16-00001-of-00002.gguf'],
  ['UD-Q4_K_XL', 'M-UD-Q4_K_XL.gguf'],
  ['q4_k', undefined],
  ['', undefined]
])('%s is %s', (tag, gguf) => {
  expect(filesOfTag(PATHS, tag)).toEqual(gguf && { gguf, mmproj: 'mmproj-F16.gguf' })
})

test('without a usual quant, latest is the first; without a GGUF nothing is', () => {
  expect(filesOfTag(['a-q6_k.gguf', 'b-q5_0.gguf'], 'latest')).toEqual({ gguf: 'a-q6_k.gguf', mmproj: undefined })
  expect(filesOfTag(['model.safetensors', 'mmproj-F16.gguf'], 'latest')).toBeUndefined()
})
