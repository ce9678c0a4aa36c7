/** Folders that ComfyUI looks in, by the use of their models; keys of its `extra_model_paths.yaml`. */
export const COMFYUI_USES = [
  'audio_encoders',
  'checkpoints',
  'clip_vision',
  'controlnet',
  'diffusion_models',
  'embeddings',
  'loras',
  'model_patches',
  'style_models',
  'text_encoders',
  'upscale_models',
  'vae'
] as const
