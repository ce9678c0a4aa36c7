import { runtimePath, type View, type ViewErrorCode, type ViewFile } from '@svc/view'
import { describe, expect, test } from 'vitest'

type Entry = readonly [name: string, kind: ViewFile['kind'], part?: number | undefined, role?: string]

const viewOf = (entries: readonly Entry[]): Pick<View, 'folder' | 'files'> => ({
  folder: '/v',
  files: entries.map(([name, kind, part, role]) => ({
    name,
    kind,
    path: `/v/${name}`,
    sizeBytes: 1,
    ...(part === undefined ? {} : { part }),
    ...(role === undefined ? {} : { role })
  }))
})

const shards = (base: string, count: number, kind: ViewFile['kind'] = 'weights.gguf'): Entry[] =>
  Array.from({ length: count }, (_, i) => [`${base}-0000${i + 1}-of-0000${count}.gguf`, kind, i + 1])

const PROJECTOR: Entry = ['mmproj-f16.gguf', 'weights.aux']
const DRAFT: Entry = ['mtp-a-q8_0.gguf', 'weights.aux', undefined, 'draft']
const OTHERS: readonly Entry[] = [
  ['config.json', 'config'],
  ['tokenizer.json', 'tokenizer'],
  ['sub/tokenizer.json', 'tokenizer'],
  ['chat_template.jinja', 'chat-template']
]

function given(entries: readonly Entry[], fragment?: string): string {
  try {
    const { is, path } = runtimePath(viewOf(entries), fragment)
    return `${is} ${path}`
  } catch (error) {
    return (error as { code: ViewErrorCode }).code
  }
}

describe('the path for a runtime', () => {
  const cases: readonly (readonly [string, readonly Entry[], string | undefined, string])[] = [
    ['the only GGUF', [['a-q8_0.gguf', 'weights.gguf'], PROJECTOR, ...OTHERS], undefined, 'file /v/a-q8_0.gguf'],
    ['the first shard', [...shards('a', 3).toReversed(), ...OTHERS], undefined, 'file /v/a-00001-of-00003.gguf'],
    ['a shard in a folder', shards('Q8/a', 2), undefined, 'file /v/Q8/a-00001-of-00002.gguf'],
    ['the folder of safetensors', [['model.safetensors', 'weights.safetensors'], ...OTHERS], undefined, 'folder /v'],
    [
      'the GGUF where both formats are',
      [
        ['m.safetensors', 'weights.safetensors'],
        ['m.gguf', 'weights.gguf']
      ],
      undefined,
      'file /v/m.gguf'
    ],
    [
      'the folder of the only adapter',
      [
        ['l/adapter_config.json', 'adapter'],
        ['l/adapter_model.safetensors', 'adapter']
      ],
      undefined,
      'folder /v/l'
    ],
    [
      'the folder above several adapters',
      [
        ['a/adapter_config.json', 'adapter'],
        ['b/adapter_config.json', 'adapter']
      ],
      undefined,
      'folder /v'
    ],
    [
      'no choice between two models',
      [
        ['a.gguf', 'weights.gguf'],
        ['b.gguf', 'weights.gguf']
      ],
      undefined,
      'E_AMBIGUOUS'
    ],
    ['no choice between two split models', [...shards('a', 2), ...shards('b', 2)], undefined, 'E_AMBIGUOUS'],
    ['sets of another count are other models', [...shards('a', 2), ...shards('a', 3)], undefined, 'E_AMBIGUOUS'],
    ['nothing without the first shard', shards('a', 3).slice(1), undefined, 'E_INCOMPLETE'],
    ['a projector by its beginning', [['a.gguf', 'weights.gguf'], PROJECTOR], 'mmproj', 'file /v/mmproj-f16.gguf'],
    ['a file by its name', [...OTHERS], 'config.json', 'file /v/config.json'],
    ['the whole path before its end', [...OTHERS], 'tokenizer.json', 'file /v/tokenizer.json'],
    ['the end of a path', [['x/y/z.json', 'tokenizer']], 'y/z.json', 'file /v/x/y/z.json'],
    [
      'one of two models by name',
      [
        ['a.gguf', 'weights.gguf'],
        ['b.gguf', 'weights.gguf']
      ],
      'b.gguf',
      'file /v/b.gguf'
    ],
    ['a split model by its beginning', [...shards('a', 2), ...shards('b', 2)], 'b', 'file /v/b-00001-of-00002.gguf'],
    ['a shard by its own name', shards('a', 2), 'a-00002-of-00002.gguf', 'file /v/a-00002-of-00002.gguf'],
    [
      'a component by its folder',
      [
        ['unet/diffusion_pytorch_model.safetensors', 'weights.safetensors'],
        ['vae/diffusion_pytorch_model.safetensors', 'weights.safetensors'],
        ['vae/config.json', 'companion']
      ],
      'vae',
      'file /v/vae/diffusion_pytorch_model.safetensors'
    ],
    [
      'a component by its name',
      [
        ['flux.safetensors', 'weights.safetensors'],
        ['ae.safetensors', 'weights.safetensors']
      ],
      'vae',
      'file /v/ae.safetensors'
    ],
    ['the draft head by its role', [['a.gguf', 'weights.gguf'], DRAFT], 'draft', 'file /v/mtp-a-q8_0.gguf'],
    ['a file named draft before the head', [DRAFT, ['draft', 'companion']], 'draft', 'file /v/draft'],
    ['no draft head', [['a.gguf', 'weights.gguf'], PROJECTOR], 'draft', 'E_NO_MATCH'],
    ['no choice between projectors', [PROJECTOR, ['mmproj-q8_0.gguf', 'weights.aux']], 'mmproj', 'E_AMBIGUOUS'],
    ['nothing by an unknown name', OTHERS, 'absent', 'E_NO_MATCH'],
    ['nothing by an empty name', OTHERS, '', 'E_NO_MATCH']
  ]
  test.each(cases)('%s', (_, entries, fragment, expected) => {
    expect(given(entries, fragment)).toBe(expected)
  })

  test('an error lists what there is', () => {
    const error = ((): unknown => {
      try {
        return runtimePath(viewOf(shards('a', 2).concat(shards('b', 2))))
      } catch (caught) {
        return caught
      }
    })()
    expect(error).toMatchObject({ details: { candidates: ['a-00001-of-00002.gguf', 'b-00001-of-00002.gguf'] } })
  })
})
