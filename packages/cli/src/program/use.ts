import { Option } from 'commander'
import { COMFYUI_USES } from '../models/comfyui.ts'
import type { CommandTools } from './tools.ts'

export function addUseCommands({ add, run }: CommandTools): void {
  add('path <ref>', 'print the path that a program loads: the GGUF, the first shard, or the folder')
    .option('--dir', 'the folder that contains all files')
    .option('--all', 'every part of a split GGUF')
    .option('--blob', "the blob's path in the store, without a file name")
    .action(run('path', 'path'))
  add('view [ref] [dir]', 'lay a model out in a folder, under its real file names; without REF: list the views')
    .addOption(
      new Option('--layout <layout>', 'files, or a hub cache for HF_HUB_CACHE')
        .choices(['files', 'hf'])
        .default('files')
    )
    .addOption(
      new Option('--copy', 'copies instead of links; reflinks if the file system supports them').conflicts('hardlink')
    )
    .option('--hardlink', 'hard links; writing to one changes the store')
    .addOption(
      new Option(
        '--comfyui [use]',
        'below DIR, in the folder for this use, with an extra_model_paths.yaml in DIR'
      ).choices(COMFYUI_USES)
    )
    .addOption(
      new Option('--rm <dir>', 'remove a view; with REF only that model of a hub cache').conflicts([
        'copy',
        'hardlink',
        'comfyui'
      ])
    )
    .action(run('view', 'view'))
  add('exec <ref> <command...>', 'run a command with a model, and protect the model from removal meanwhile')
    .passThroughOptions()
    .action(run('exec', 'exec'))
}
