/** Only these: a bundle of `import('lowlight')` holds the grammars of all 190 languages, for code that nobody shows. */
export { common, createLowlight } from 'lowlight'
