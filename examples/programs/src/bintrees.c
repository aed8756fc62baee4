// bintrees: builds, walks and frees many binary trees beside one that lives throughout.
// Exercises malloc and free, recursion (deep call trees of tiny functions) and pointer chasing.
// Size: depth of the deepest trees.
#include "program.h"

typedef struct Tree {
  struct Tree* left;
  struct Tree* right;
  uint32_t label;
} Tree;

static Tree* build(uint32_t depth, uint32_t label) {
  Tree* tree = malloc(sizeof *tree);
  if (tree == NULL) exit(1);
  tree->label = label;
  tree->left = depth == 0 ? NULL : build(depth - 1, 2 * label);
  tree->right = depth == 0 ? NULL : build(depth - 1, 2 * label + 1);
  return tree;
}

static uint32_t count(const Tree* tree) {
  return tree == NULL ? 0 : 1 + count(tree->left) + count(tree->right);
}

static uint64_t digest(const Tree* tree) {
  if (tree == NULL) return 1;
  return fold(digest(tree->left) + tree->label, digest(tree->right));
}

static void release(Tree* tree) {
  if (tree == NULL) return;
  release(tree->left);
  release(tree->right);
  free(tree);
}

int main(int argc, char** argv) {
  uint32_t deepest = size_argument(argc, argv, 14);
  if (deepest < 4) deepest = 4;
  if (deepest > 24) deepest = 24;
  uint64_t checksum = 0;
  Tree* lasting = build(deepest, 1);
  for (uint32_t depth = 4; depth <= deepest; depth += 2) {
    uint32_t trees = 1u << (deepest - depth + 2);
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < trees; ++i) {
      Tree* tree = build(depth, i);
      nodes += count(tree);
      checksum = fold(checksum, digest(tree));
      release(tree);
    }
    printf("bintrees %" PRIu32 " trees of depth %" PRIu32 ": %" PRIu32 " nodes\n", trees, depth,
           nodes);
  }
  printf("bintrees lasting tree of depth %" PRIu32 ": %" PRIu32 " nodes\n", deepest,
         count(lasting));
  print_checksum("bintrees", fold(checksum, digest(lasting)));
  release(lasting);
  return 0;
}
