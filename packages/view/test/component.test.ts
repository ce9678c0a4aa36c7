import { componentOf } from '@svc/view'
import { expect, test } from 'vitest'

test.each([
  ['vae/diffusion_pytorch_model.safetensors', 'vae'],
  ['text_encoder/model.safetensors', 'text-encoder'],
  ['text_encoder_2/model-00001-of-00002.safetensors', 'text-encoder'],
  ['unet/diffusion_pytorch_model.fp16.safetensors', 'diffusion-model'],
  ['transformer/diffusion_pytorch_model.safetensors', 'diffusion-model'],
  ['split_files/text_encoders/t5xxl_fp8_e4m3fn.safetensors', 'text-encoder'],
  ['split_files/diffusion_models/flux1-dev.safetensors', 'diffusion-model'],
  ['vocoder/model.safetensors', 'vocoder'],
  ['clip_l.safetensors', 'text-encoder'],
  ['ae.safetensors', 'vae'],
  ['wan_2.1_vae.safetensors', 'vae'],
  ['model.safetensors', undefined],
  ['vaexample.safetensors', undefined],
  ['t5-small/model.safetensors', undefined]
])('%s is %s', (name, component) => {
  expect(componentOf({ name, kind: 'weights.safetensors' })).toBe(component)
  expect(componentOf({ name, kind: 'companion' })).toBeUndefined()
})
