import { type Command, Option } from 'commander'
import { COMFYUI_USES } from '../comfyui.ts'
import type { CommandTools } from '../command-tools.ts'

/** The commands that hand models to other programs, or import theirs: `view`, `path`, `exec`, `adopt`. */
export function addLoadCommands(program: Command, { add, run }: Pick<CommandTools, 'add' | 'run'>): void {
  add(program, 'path <ref>', 'print the path that a program loads: the GGUF, the first shard, or the folder')
    .option('--dir', 'the folder that contains all files')
    .option('--all', 'every part of a split GGUF')
    .option('--blob', "the blob's own file in the store, which has no name")
    .action(run(() => import('./path.ts').then(({ path }) => path)))
  add(
    program,
    'view [ref] [dir]',
    'lay a model out in a folder, under its real file names; without REF: list the views'
  )
    .addOption(
      new Option('--layout <layout>', 'files, or a hub cache for HF_HUB_CACHE')
        .choices(['files', 'hf'])
        .default('files')
    )
    .addOption(
      new Option('--copy', 'copies instead of links; reflinks where the file system can').conflicts('hardlink')
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
    .action(run(() => import('./view.ts').then(({ view }) => view)))
  add(program, 'exec <ref> <command...>', 'run a command with a model, and protect the model from removal meanwhile')
    .passThroughOptions()
    .action(run(() => import('./exec.ts').then(({ exec }) => exec)))
  add(
    program,
    'adopt [path...]',
    'import models of other tools: hf, ollama, lmstudio, llama, dmr, ramalama, or a folder'
  )
    .option('--dry-run', 'only show the models, and the space that they need')
    .option('--move', 'remove the original weights once they are safe here')
    .option('--replace', 'give names to these models, even if other models have them')
    .option('-y, --yes', 'do not ask first')
    .option('--private', 'keep the models private: do not announce or share them')
    .option('--keep-names', 'keep file names as they are, upper case included')
    .action(run(() => import('./adopt.ts').then(({ adopt }) => adopt)))
}
