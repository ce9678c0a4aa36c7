import { Option } from 'commander'
import { addImportCommands } from './imports.ts'
import { type CommandTools, EVICT } from './tools.ts'

export function addGetCommands(tools: CommandTools): void {
  const { add, group, run } = tools
  add('search <words...>', 'search the hub for models')
    .option('--gguf', 'only repositories with GGUF files')
    .option('--safetensors', 'only repositories with safetensors')
    .option('--size <range>', 'parameters: 1B-8B, -8B or 70B-')
    .option('--license <name>', 'as the hub names it: apache-2.0')
    .option('--limit <n>', 'repositories of a page, at most 100 (default 20)')
    .option('--page <n>', 'the number of the page')
    .option('--catalog', 'search the community catalog instead')
    .option('--here', 'search the models in the store instead')
    .addOption(new Option('--format <format>', 'how to print').choices(['table', 'json', 'ids']))
    .action(run('search', 'search'))
  addImportCommands(tools)
  const catalog = group('catalog', 'the community catalog of torrents')
  add('search <terms...>', 'search the catalog for models', catalog).action(run('catalog', 'catalogSearch'))
  add('adopt [path...]', 'import models of other tools: hf, ollama, lmstudio, llama, dmr, ramalama, or a folder')
    .option('--dry-run', 'only show the models, and the space that they need')
    .option('--move', 'remove the original weights once they are safe here')
    .option('--replace', 'give names to these models, even if other models have them')
    .option('-y, --yes', 'do not ask first')
    .option('--private', 'keep the models private: do not announce or share them')
    .option('--keep-names', 'keep file names as they are, upper case included')
    .action(run('adopt', 'adopt'))
  add('pull <ref>', 'fetch the missing files of a model, or a model that only the hub has')
    .option(
      '--wait <time>',
      'import again from the hub if no peer sends anything for this long: 30s, 10m (default 15s)'
    )
    .addOption(EVICT)
    .action(run('jobs', 'pull'))
  add('outdated [ref...]', 'ask the hub for newer commits of the models here').action(run('newer', 'outdated'))
  add('upgrade [ref...]', 'import newer commits; a tag keeps the older version')
    .option('--all', 'every model that has a newer commit')
    .option('--dry-run', 'only show what would be fetched')
    .option('--replace', 'also if the hub has renamed the repository')
    .addOption(EVICT)
    .action(run('newer', 'upgrade'))
  add('companions <ref>', 'fetch the companion files of a model from the hub, if its import did not').action(
    run('jobs', 'companions')
  )
}
