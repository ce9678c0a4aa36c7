import { COMFYUI_USES, STANDING_LAYOUTS } from '@svc/view'
import { Argument, Option } from 'commander'
import { RUNTIME_NAMES } from '../runtimes/runtimes.ts'
import { type CommandTools, list } from './tools.ts'

export function addUseCommands({ add, run }: CommandTools): void {
  add('run <ref> [args...]', 'start a runtime on a model: llama-server, llama-cli, ollama, vllm or mlx_lm')
    .addOption(
      new Option('--with <runtime>', 'the runtime; default: the first that is installed and loads the model').choices(
        RUNTIME_NAMES
      )
    )
    .action(run('run', 'run'))
  add('path <ref>', 'print the path to load: the GGUF, its first shard, or the folder')
    .option('--dir', 'print the folder with all files')
    .option('--all', 'print every part of a split GGUF')
    .option('--blob', "print the blob's path in the store, without a file name")
    .action(run('path', 'path'))
  const views = add(
    'view [ref] [dir]',
    'lay a model out in a folder, under its real file names; without REF: list the views'
  )
    .addOption(
      new Option('--layout <layout>', 'files, or a hub cache for HF_HUB_CACHE')
        .choices(['files', 'hf'])
        .default('files')
    )
    .addOption(new Option('--copy', 'make copies instead of links; reflinks where supported').conflicts('hardlink'))
    .option('--hardlink', 'make hard links; writing to one changes the store')
    .addOption(
      new Option(
        '--comfyui [use]',
        'lay it out below DIR for ComfyUI, in the folder for this use, with an extra_model_paths.yaml'
      ).choices(COMFYUI_USES)
    )
    .option('--replace', 'replace a view of another model at DIR')
    .addOption(
      new Option('--refresh [dir]', 'move a view, or all views, of older versions to the present ones').conflicts([
        'copy',
        'hardlink',
        'comfyui'
      ])
    )
    .addOption(
      new Option('--rm <dir>', 'remove a view; with REF, only that model of a hub cache').conflicts([
        'copy',
        'hardlink',
        'comfyui'
      ])
    )
    .action(run('view', 'view'))
  add('add', "let a tool's own folder follow this store", views)
    .addArgument(new Argument('<layout>', 'whose folder it is').choices(STANDING_LAYOUTS))
    .argument('[dir]', "the folder; default: the tool's own")
    .option('--match <glob>', 'only these models, as in "acme/*:q4_k_m"; repeatable', list)
    .option('--copy', 'copies instead of links, for tools that follow none')
    .option('--reload <url>', 'layout llama: tell the llama-server at this address of changes')
    .action(run('standing', 'addStanding'))
  add('exec <ref> <command...>', 'run a command with a model, and protect the model from removal until it exits')
    .passThroughOptions()
    .action(run('exec', 'exec'))
}
