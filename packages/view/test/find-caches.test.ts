import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findCaches } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'

describe('the locations of caches', () => {
  const found = async (home: string, env: Record<string, string>): Promise<string[]> =>
    (await findCaches({ home, env })).map(({ tool, path }) => `${tool} ${path.replace(home, '~')}`)

  test('the usual places of all tools', async () => {
    const home = temporaryFolder()
    expect(await found(home, {})).toEqual([])
    for (const place of [
      '.cache/huggingface/hub',
      '.ollama/models',
      '.lmstudio/models',
      '.cache/lm-studio/models',
      '.cache/llama.cpp',
      '.docker/models',
      '.local/share/ramalama/store',
      'elsewhere/models'
    ])
      mkdirSync(join(home, place), { recursive: true })
    writeFileSync(join(home, '.lmstudio-home-pointer'), `${join(home, 'elsewhere')}\n`)
    expect(await found(home, {})).toEqual([
      'hf ~/.cache/huggingface/hub',
      'ollama ~/.ollama/models',
      'lmstudio ~/elsewhere/models',
      'lmstudio ~/.lmstudio/models',
      'lmstudio ~/.cache/lm-studio/models',
      'llama ~/.cache/llama.cpp',
      'dmr ~/.docker/models',
      'ramalama ~/.local/share/ramalama/store'
    ])
  })

  test("the environment takes precedence, in each tool's order", async () => {
    const home = temporaryFolder()
    for (const place of ['a', 'b', 'c/hub', 'x/huggingface/hub', 'o', 'l', 'r/store', 'm', '.cache/huggingface/hub'])
      mkdirSync(join(home, place), { recursive: true })
    const at = (place: string): string => join(home, place)
    const hub = async (env: Record<string, string>): Promise<string[]> =>
      (await found(home, env)).filter((line) => line.startsWith('hf'))
    const [A, B, C, X] = [
      { HF_HUB_CACHE: at('a') },
      { HUGGINGFACE_HUB_CACHE: at('b') },
      { HF_HOME: at('c') },
      { XDG_CACHE_HOME: at('x') }
    ]
    expect(await hub({ ...A, ...B, ...C, ...X })).toEqual(['hf ~/a'])
    expect(await hub({ ...B, ...C, ...X })).toEqual(['hf ~/b'])
    expect(await hub({ ...C, ...X })).toEqual(['hf ~/c/hub'])
    expect(await hub({ ...X })).toEqual(['hf ~/x/huggingface/hub'])
    expect(await hub({ HF_HUB_CACHE: '' })).toEqual(['hf ~/.cache/huggingface/hub'])
    expect(await hub({ HF_HUB_CACHE: '~/a' })).toEqual(['hf ~/a'])
    expect(await hub({ HF_HUB_CACHE: 'relative' })).toEqual([])
    const rest = { OLLAMA_MODELS: at('o'), LLAMA_CACHE: at('l'), RAMALAMA_STORE: at('r'), MODELS_PATH: at('m') }
    expect(await found(home, rest)).toEqual([
      'hf ~/.cache/huggingface/hub',
      'hf ~/l',
      'llama ~/l',
      'ollama ~/o',
      'dmr ~/m',
      'ramalama ~/r/store'
    ])
  })
})
